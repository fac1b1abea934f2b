// ---- Charts, drawn when their section is first open: closed, they have no width

const smoothing = document.getElementById('smoothing');
const noisy = []; // charts that can be smoothed, each with its view and its points

// An exponential moving average of each curve that does not start at 0, as in TensorBoard.
function smoothed(points, weight) {
  const curves = {};
  return points.map((point) => {
    const curve = (curves[point.name] ??= { mean: 0, rest: 1 });
    curve.mean = weight * curve.mean + (1 - weight) * point.value;
    curve.rest *= weight;
    return { ...point, smooth: curve.mean / (1 - curve.rest) };
  });
}

function smooth({ view, points }) {
  const weight = Number(smoothing.value);
  view.signal('smoothing', weight).data('points', smoothed(points, weight)).run();
}

async function draw(figure) {
  if (figure.dataset.drawn) return;
  figure.dataset.drawn = 'yes';
  const spec = JSON.parse(figure.querySelector('script').textContent);
  // Vega marks the points that it gets, and would take marked copies for the old ones.
  const points = structuredClone(spec.data.values);
  const { view } = await vegaEmbed(figure.querySelector('.drawing'), spec, { actions: false, renderer: 'svg' });
  if ('noisy' in figure.dataset) {
    noisy.push({ view, points });
    smooth(noisy.at(-1));
  }
}

for (const section of sections) {
  const drawAll = () => { if (section.open) section.querySelectorAll('.chart').forEach(draw); };
  section.addEventListener('toggle', drawAll);
  drawAll();
}
smoothing?.addEventListener('input', () => {
  smoothing.nextElementSibling.textContent = Number(smoothing.value).toFixed(2);
  noisy.forEach(smooth);
});

// ---- A menu selects the metric that a table compares

for (const menu of document.querySelectorAll('select[data-table]')) {
  const table = document.getElementById(menu.dataset.table);
  const choose = () => {
    for (const { dataset, cellIndex } of table.tHead.rows[0].cells) {
      const hidden = Boolean(dataset.metric) && dataset.metric !== menu.value;
      for (const row of table.rows) row.cells[cellIndex].hidden = hidden;
    }
  };
  menu.addEventListener('input', choose);
  choose();
}

// ---- Galleries: for a card and the selected filters, a note and the keys to sort by; null to hide it

function detections(card, wanted) {
  function isShown({ label, kind, score }) {
    if (wanted.class && label !== wanted.class) return false;
    if (kind === 'truth') return true;
    // An object whose detection has a lower score than asked for counts as missed.
    const isLow = Number(score) < wanted.score;
    return (!wanted.kind || kind === wanted.kind) && isLow === (kind === 'missed');
  }
  for (const one of card.querySelectorAll('[data-kind]')) if (!isShown(one.dataset)) one.remove();
  const ofPanels = [...card.querySelectorAll('.panel:not(.truth)')]
    .map((panel) => [...panel.querySelectorAll('[data-kind]:not([data-kind=truth], [data-kind=correct])')]);
  const wrong = ofPanels.flat();
  const found = wrong.filter((one) => one.dataset.kind !== 'missed').map((one) => Number(one.dataset.score));
  return wrong.length === 0 ? null : {
    note: wrong.length === 1 ? '1 error' : `${ofPanels.map((panel) => panel.length).join(' + ')} errors`,
    'worst first': -found.reduce((sum, score) => sum + score, wrong.length - found.length),
    'most errors': -wrong.length,
    'highest score of an error': -Math.max(0, ...found),
  };
}

function segments(card, wanted) {
  const ious = [...card.querySelectorAll('[data-ious]')]
    .map((map) => JSON.parse(map.dataset.ious)[wanted.class || 'all']).filter((iou) => iou !== undefined);
  const mean = ious.reduce((sum, iou) => sum + iou, 0) / ious.length;
  // Without any it is not a number.
  return mean <= wanted.iou ? { note: `IoU ${mean.toFixed(2)}`, 'worst first': mean, 'best first': -mean } : null;
}

const CARDS = matchMedia('(max-width: 40rem)').matches ? 4 : 12; // at a time

function runGallery(gallery, choose) {
  const [form, cards, more, count] = ['form', '.cards', '.more', '.count'].map((name) => gallery.querySelector(name));
  const all = [...gallery.querySelector('template').content.children];
  let found;
  function showMore() {
    cards.append(...found.slice(cards.childElementCount, cards.childElementCount + CARDS).map(({ card }) => card));
    more.hidden = cards.childElementCount === found.length;
    watchLabels(cards);
  }
  function update() {
    const wanted = Object.fromEntries(new FormData(form));
    for (const input of form.querySelectorAll('[type=range]')) {
      input.nextElementSibling.textContent = Number(input.value).toFixed(2);
    }
    found = all.map((original) => {
      const card = original.cloneNode(true);
      for (const panel of card.querySelectorAll('[data-run]')) {
        if (wanted.run && panel.dataset.run !== wanted.run) panel.remove();
      }
      const name = card.querySelector('b').textContent;
      return { card, name, ...choose(card, wanted) };
    }).filter(({ note }) => note);
    const key = (one) => one[wanted.sort];
    found.sort((a, b) => (key(a) < key(b) ? -1 : Number(key(a) > key(b))));
    for (const { card, note } of found) card.querySelector('figcaption span').textContent = note;
    cards.style.setProperty('--panels', found[0]?.card.querySelectorAll('.panel').length ?? 1);
    cards.replaceChildren();
    showMore();
    count.textContent = found.length === all.length ? `The ${count.dataset.of}`
      : `${found.length} of the ${count.dataset.of}`;
  }
  more.addEventListener('click', showMore);
  form.addEventListener('input', update);
  update();
}

for (const [id, choose] of Object.entries({ detections, segments })) {
  const gallery = document.getElementById(id);
  if (gallery) runGallery(gallery, choose);
}

'use strict';

// ---- Charts

for (const figure of document.querySelectorAll('.chart')) {
  const spec = JSON.parse(figure.querySelector('script').textContent);
  vegaEmbed(figure.querySelector('.drawing'), spec, { actions: false, renderer: 'svg' });
}

// ---- Tables that a click on a heading sorts

function cellValue(row, column) {
  const cell = row.cells[column];
  return 'value' in cell.dataset ? Number(cell.dataset.value) : cell.textContent.trim();
}

function sortTable(table, heading) {
  // Figures first from the highest down, words from A to Z.
  const column = heading.cellIndex;
  const rows = [...table.tBodies[0].rows];
  const numeric = typeof cellValue(rows[0], column) === 'number';
  const before = heading.getAttribute('aria-sort');
  const ascending = before ? before === 'descending' : !numeric;
  for (const other of heading.parentNode.cells) other.removeAttribute('aria-sort');
  heading.setAttribute('aria-sort', ascending ? 'ascending' : 'descending');
  rows.sort((a, b) => {
    const [x, y] = [cellValue(a, column), cellValue(b, column)];
    return (ascending ? 1 : -1) * (numeric ? x - y : x.localeCompare(y));
  });
  table.tBodies[0].append(...rows);
}

for (const table of document.querySelectorAll('.sortable')) {
  for (const button of table.querySelectorAll('thead button')) {
    button.addEventListener('click', () => sortTable(table, button.closest('th')));
  }
}

// ---- What detections and objects look like: a colour, a letter and a dash for each kind

const KINDS = {
  correct: { colour: '#00c490', mark: '✓' },
  classification: { colour: '#e69f00', mark: 'C' },
  localisation: { colour: '#56b4e9', mark: 'L' },
  both: { colour: '#e58fc0', mark: 'CL' },
  duplicate: { colour: '#f0e442', mark: 'D' },
  background: { colour: '#ff7a29', mark: 'B' },
  missed: { colour: '#ffffff', mark: 'M' },
};
const DASH = { missed: '6 4', duplicate: '2 3' };

for (const key of document.querySelectorAll('.key[data-kind]')) showKey(key, key.dataset.kind);

function showKey(key, kind) {
  key.style.setProperty('--colour', KINDS[kind].colour);
  key.textContent = KINDS[kind].mark;
}

// ---- Small helpers

const maker = (space) => (name, attributes = {}, ...children) => {
  const made = document.createElementNS(space, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
};
const element = maker('http://www.w3.org/1999/xhtml');
const drawn = maker('http://www.w3.org/2000/svg');

function picture(image, ...layers) {
  const size = { width: image.width, height: image.height };
  const photo = image.picture ? drawn('image', { ...size, href: image.picture })
    : drawn('text', { class: 'missing', x: image.width / 2, y: image.height / 2,
      'font-size': Math.min(image.height / 8, 1.5 * image.width / image.name.length) }, image.name);
  return drawn('svg', { viewBox: `0 0 ${image.width} ${image.height}`, role: 'img' }, photo, ...layers);
}

// The runs that are asked for and know an image, with what they say of it.
function runsOf(image, wanted, data) {
  return data.runs.map((run, i) => image.runs[i] && { ...image.runs[i], name: run.name, colour: run.colour })
    .filter((run, i) => run && (wanted.run === 'all' || Number(wanted.run) === i));
}

// What puts a patch of a run's colour before a text.
function ofRun(colour) {
  return { class: 'run', style: `--run: ${colour}` };
}

function mean(values) {
  return values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length);
}

const dialog = document.querySelector('dialog');

function enlarge(panel) {
  const caption = element('p', {}, panel.querySelector('span').textContent);
  dialog.querySelector('div').replaceChildren(caption, panel.querySelector('svg').cloneNode(true));
  dialog.showModal();
}

// ---- Boxes and masks of a detector

const detections = {
  sorts: {
    worst: { name: 'worst first', key: (card) => -card.cost },
    errors: { name: 'most errors', key: (card) => -card.errors },
    score: { name: 'highest score of an error', key: (card) => -card.score },
    name: { name: 'name', key: (card) => card.image.name },
  },

  controls: () => ({
    kind: { label: 'Error', options: ['any', ...Object.keys(KINDS).filter((kind) => kind !== 'correct')] },
    score: { label: 'Score from', min: 0.05, max: 0.95, step: 0.05, value: 0.3 },
  }),

  classes: (image) => image.runs.flatMap((run) => (run ? [...run.truths, ...run.found] : []).map((one) => one.label)),

  legend: () => Object.keys(KINDS).map((kind) => {
    const key = element('i', { class: 'key' });
    showKey(key, kind);
    return element('li', {}, key, kind);
  }),

  // An object whose detection has a lower score than asked for counts as missed.
  items: (run, wanted) => [
    ...run.truths.filter((one) => (one.score ?? 0) < wanted.score).map((one) => ({ ...one, kind: 'missed', score: 1 })),
    ...run.found.filter((one) => one.score >= wanted.score),
  ].filter((one) => wanted.class === 'all' || one.label === wanted.class),

  card(image, wanted, data) {
    const wrong = runsOf(image, wanted, data).flatMap((run) => this.items(run, wanted)).filter((one) => one.kind !== 'correct'
      && (wanted.kind === 'any' || one.kind === wanted.kind));
    const cost = wrong.reduce((sum, one) => sum + one.score, 0);
    const counted = wrong.length === 1 ? '1 error' : `${wrong.length} errors`;
    return { image, matches: wrong.length > 0, cost, errors: wrong.length, note: counted,
      score: Math.max(0, ...wrong.filter((one) => one.kind !== 'missed').map((one) => one.score)) };
  },

  panels(image, wanted, data) {
    const shown = runsOf(image, wanted, data);
    const inClass = (one) => wanted.class === 'all' || one.label === wanted.class;
    const truths = shown[0] ? shown[0].truths.filter(inClass) : [];
    const first = truths.map((one) => ({ ...one, kind: 'truth', text: one.label }));
    return [['ground truth', first], ...shown.map((run) => [run.name, this.items(run, wanted)
      .filter((one) => wanted.kind === 'any' || one.kind === wanted.kind)
      .sort((a, b) => a.score - b.score)
      .map((one) => ({ ...one, text: this.text(one) })), run.colour])]
      .map(([name, items, colour]) => [name, picture(image, ...items.flatMap((one) => this.shape(image, one))), colour]);
  },

  text: (one) => {
    const { mark } = KINDS[one.kind];
    return one.kind === 'missed' ? `${mark} ${one.label}` : `${mark} ${one.label} ${one.score.toFixed(2)}`;
  },

  shape(image, one) {
    const [x, y, width, height] = one.box;
    const colour = one.kind === 'truth' ? '#ffffff' : KINDS[one.kind].colour;
    const size = Math.max(image.width, image.height) / 24;
    const outline = one.outline ? ['path', { d: one.outline }] : ['rect', { x, y, width, height }];
    const style = `--colour: ${colour}` + (one.outline ? `; --tint: ${colour}` : '');
    const dash = DASH[one.kind] ? { 'stroke-dasharray': DASH[one.kind] } : {};
    const left = Math.min(Math.max(x, 0), image.width - size * (0.62 * one.text.length + 0.3));
    const label = drawn('text', { class: 'label', x: Math.max(0, left) + size * 0.2, 'font-size': size,
      y: Math.max(y, 0) + size, 'stroke-width': size / 4 }, one.text);
    label.style.fill = colour;
    return [drawn(outline[0], { class: 'casing', ...outline[1] }),
      drawn(outline[0], { class: 'shape', style, ...dash, ...outline[1] },
        drawn('title', {}, one.kind === 'truth' ? one.label : `${one.text}: ${one.kind}`)),
      label];
  },
};

// ---- Maps of a segmenter

const segments = {
  sorts: {
    worst: { name: 'worst first', key: (card) => card.iou },
    best: { name: 'best first', key: (card) => -card.iou },
    name: { name: 'name', key: (card) => card.image.name },
  },

  controls: () => ({ iou: { label: 'IoU up to', min: 0.05, max: 1, step: 0.05, value: 1 } }),

  classes: (image) => image.runs.flatMap((run) => (run ? Object.keys(run.classes) : [])),

  // One for all runs whose classes have the same colours.
  legend(data) {
    const palettes = [...new Set(data.runs.map((run) => JSON.stringify(run.classes)))];
    const owners = (palette) => data.runs.filter((run) => JSON.stringify(run.classes) === palette);
    return palettes.flatMap((palette) => [
      ...(palettes.length > 1 ? owners(palette).map((run) => element('li', ofRun(run.colour), run.name)) : []),
      ...Object.entries(JSON.parse(palette)).map(([name, rgb]) => element('li', {},
        element('i', { class: 'key', style: `--colour: rgb(${rgb})` }, '\u00a0'), name)),
    ]);
  },

  card(image, wanted, data) {
    const ious = runsOf(image, wanted, data).map((run) => (wanted.class === 'all' ? run.score : run.classes[wanted.class]))
      .filter((iou) => iou !== undefined);
    const iou = mean(ious);
    return { image, matches: ious.length > 0 && iou <= wanted.iou, iou, note: `IoU ${iou.toFixed(2)}` };
  },

  panels(image, wanted, data) {
    const size = { width: image.width, height: image.height };
    const layer = (href) => drawn('image', { ...size, href, opacity: 0.6, preserveAspectRatio: 'none',
      style: 'image-rendering: pixelated' });
    const shown = runsOf(image, wanted, data);
    const truth = shown.slice(0, 1).map((run) => ['ground truth', picture(image, layer(run.truth))]);
    return [['image', picture(image)], ...truth, ...shown.map((run) =>
      [`${run.name}: ${run.score.toFixed(2)}`, picture(image, layer(run.found)), run.colour])];
  },
};

// ---- A gallery: controls, and the cards that they leave

const CARDS = 12; // at a time

function select(name, label, options) {
  const made = element('select', { name }, ...options.map(([value, text]) => element('option', { value }, text)));
  return element('label', {}, label, made);
}

function range(name, { label, value, ...limits }) {
  const shown = element('output', {}, value.toFixed(2));
  // The value comes last: it is rounded to the limits and steps that are set by then.
  const input = element('input', { type: 'range', name, ...limits, value });
  input.addEventListener('input', () => { shown.textContent = Number(input.value).toFixed(2); });
  return element('label', { class: 'range' }, label, input, shown);
}

function controlsOf(kind, data) {
  const classes = [...new Set(data.images.flatMap(kind.classes))].sort();
  const made = [select('class', 'Class', [['all', 'all'], ...classes.map((name) => [name, name])])];
  for (const [name, control] of Object.entries(kind.controls())) {
    made.push('options' in control
      ? select(name, control.label, control.options.map((option) => [option, option])) : range(name, control));
  }
  const runs = [['all', 'all'], ...data.runs.map((run, i) => [i, run.name])];
  if (data.runs.length > 1) made.push(select('run', 'Run', runs));
  made.push(select('sort', 'Sort', Object.entries(kind.sorts).map(([key, sort]) => [key, sort.name])));
  return made;
}

function wantedBy(form) {
  const wanted = { run: 'all', ...Object.fromEntries(new FormData(form)) };
  for (const input of form.querySelectorAll('input')) wanted[input.name] = Number(input.value);
  return wanted;
}

function cardOf(card, panels) {
  const buttons = panels.map(([name, svg, colour]) => {
    const caption = element('span', colour ? ofRun(colour) : {}, name);
    const panel = element('button', { type: 'button', class: 'panel' }, caption, svg);
    panel.addEventListener('click', () => enlarge(panel));
    return panel;
  });
  const caption = element('figcaption', {}, element('b', {}, card.image.name), element('span', {}, card.note));
  return element('figure', { class: 'card' }, caption, element('div', { class: 'panels' }, ...buttons));
}

function runGallery(gallery, kind) {
  const data = JSON.parse(gallery.querySelector('script').textContent);
  const [form, cards, more] = ['form', '.cards', '.more'].map((name) => gallery.querySelector(name));
  form.append(...controlsOf(kind, data));
  gallery.querySelector('.legend').append(...kind.legend(data));
  let wanted;
  let found;
  function showMore() {
    const next = found.slice(cards.childElementCount, cards.childElementCount + CARDS);
    cards.append(...next.map((card) => cardOf(card, kind.panels(card.image, wanted, data))));
    more.hidden = cards.childElementCount === found.length;
  }
  function update() {
    wanted = wantedBy(form);
    const { key } = kind.sorts[wanted.sort];
    found = data.images.map((image) => kind.card(image, wanted, data)).filter((card) => card.matches);
    found.sort((a, b) => (key(a) < key(b) ? -1 : Number(key(a) > key(b))));
    const panels = kind.panels(data.images[0], wanted, data).length;
    cards.style.setProperty('--panels', panels);
    cards.replaceChildren();
    showMore();
    gallery.querySelector('.count').textContent =
      `${found.length} of the ${data.images.length} worst of ${data.total} images`;
  }
  more.addEventListener('click', showMore);
  form.addEventListener('input', update);
  update();
}

for (const [id, kind] of Object.entries({ detections, segments })) {
  const gallery = document.getElementById(id);
  if (gallery) runGallery(gallery, kind);
}

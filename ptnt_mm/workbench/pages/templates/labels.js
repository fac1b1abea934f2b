// ---- Labels of boxes: of the same size at every zoom, over no other label or box where there is room.
// label_places.py does the same for pictures in files.

const LETTERS = 12; // pixels
const MOST_COVERED = 1; // boxes that may lie under the whole of a label
const MOST_AREA = 0.15; // of a picture, under labels

function overlap(a, b) {
  const width = Math.min(a.x + a.width, b.x + b.width) - Math.max(a.x, b.x);
  const height = Math.min(a.y + a.height, b.y + b.height) - Math.max(a.y, b.y);
  return Math.max(0, width) * Math.max(0, height);
}

function around({ x, y, width, height }, label, room) {
  const [right, bottom] = [x + width, y + height];
  const places = [y - label.height, y, bottom, bottom - label.height]
    .flatMap((top) => [[x, top], [right - label.width, top]]);
  places.push([right, y], [x - label.width, y]);
  const inside = (value, most) => Math.max(0, Math.min(value, most));
  return places.map(([left, top]) => ({
    ...label, x: inside(left, room.width - label.width), y: inside(top, room.height - label.height),
  }));
}

function placeLabels(svg) {
  const pixel = 1 / (svg.getScreenCTM()?.a ?? 0); // in pixels of the image
  if (!Number.isFinite(pixel)) return;
  const size = LETTERS * pixel;
  // The best is drawn last, and chooses first.
  const labels = [...svg.querySelectorAll('.label')].reverse();
  const boxes = labels.map(({ dataset }) => JSON.parse(dataset.box)).map(([x, y, width, height]) => ({ x, y, width, height }));
  for (const label of labels) label.lastElementChild.setAttribute('font-size', size);
  const widths = labels.map((label) => label.lastElementChild.getComputedTextLength() + size / 2);
  const placed = [];
  const room = svg.viewBox.baseVal;
  let free = MOST_AREA * room.width * room.height;
  labels.forEach((label, i) => {
    const cost = (place) => 0.25 * overlap(place, boxes[i])
      + placed.reduce((sum, other) => sum + 4 * overlap(place, other), 0)
      + boxes.reduce((sum, box, j) => sum + (j === i ? 0 : overlap(place, box)), 0);
    const [width, height] = [widths[i], 1.3 * size];
    const places = around(boxes[i], { width, height }, room);
    const costs = places.map(cost);
    const best = Math.min(...costs);
    // Where there is no room, enlarging the picture shows the label.
    const isCrowded = best > MOST_COVERED * width * height || width * height > free;
    label.classList.toggle('crowded', isCrowded);
    if (isCrowded) return;
    free -= width * height;
    const place = places[costs.indexOf(best)];
    placed.push(place);
    const [plate, text] = label.children;
    for (const [name, value] of Object.entries(place)) plate.setAttribute(name, value);
    text.setAttribute('x', place.x + size / 4);
    text.setAttribute('y', place.y + size);
  });
}

// Called when a picture appears and when its size changes.
const pictures = new ResizeObserver((entries) => { for (const { target } of entries) placeLabels(target); });

function watchLabels(part) {
  for (const svg of part.querySelectorAll('svg:has(.label)')) {
    svg.append(...svg.querySelectorAll('.label')); // above all boxes
    pictures.observe(svg);
  }
}
watchLabels(document);

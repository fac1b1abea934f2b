// Numbers stand at the right of their column. On a phone, the rows of tables with sentences become
// blocks, whose cells name their columns (custom.css).

const NUMBER = /^[-+–≈]?[\d.,]+( ?(%|M|G|MiB|GiB|ms|s|px|x))?( (to|x) [\d.,]+)?( \([\d., to]+\))?$|^[–-]?$/;
const PROSE = 40; // characters of a cell

for (const table of document.querySelectorAll('article table.docutils')) {
  const headings = [...(table.tHead?.rows[0]?.cells ?? [])].map((cell) => cell.textContent.trim());
  const rows = [...table.tBodies].flatMap((body) => [...body.rows]);
  headings.forEach((heading, column) => {
    const cells = rows.map((row) => row.cells[column]).filter(Boolean);
    const isNumeric = column > 0 && cells.some((cell) => /\d/.test(cell.textContent))
      && cells.every((cell) => NUMBER.test(cell.textContent.trim()));
    for (const cell of cells) {
      if (heading) cell.dataset.heading = heading;
      if (isNumeric) cell.classList.add('number');
    }
    if (isNumeric) table.tHead.rows[0].cells[column].classList.add('number');
  });
  table.classList.toggle('prose', rows.some((row) => [...row.cells].some((cell) => cell.textContent.length > PROSE)));
}

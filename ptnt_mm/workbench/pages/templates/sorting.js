// ---- A click on a heading sorts: numbers from the highest down, words from A to Z

for (const heading of document.querySelectorAll('.sortable th:has(button)')) {
  heading.addEventListener('click', () => {
    const body = heading.closest('table').tBodies[0];
    const cell = (row) => row.cells[heading.cellIndex];
    const numeric = 'value' in cell(body.rows[0]).dataset;
    const before = heading.getAttribute('aria-sort');
    const ascending = before ? before === 'descending' : !numeric;
    for (const other of heading.parentNode.cells) other.removeAttribute('aria-sort');
    heading.setAttribute('aria-sort', ascending ? 'ascending' : 'descending');
    const rows = [...body.rows].sort((a, b) => (numeric ? cell(a).dataset.value - cell(b).dataset.value
      : cell(a).textContent.localeCompare(cell(b).textContent)));
    body.append(...(ascending ? rows : rows.reverse()));
  });
}

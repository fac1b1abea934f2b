// ---- A click on a picture enlarges it

const dialog = document.querySelector('dialog');

document.addEventListener('click', ({ target }) => {
  const panel = target.closest('.card .panel');
  if (!panel) return;
  const card = panel.closest('.card');
  const shown = [...new Set([card.querySelector('.truth') ?? panel, panel])];
  dialog.querySelector('p').textContent = card.querySelector('b').textContent;
  dialog.querySelector('.legend').innerHTML = card.closest('.gallery').querySelector('.legend').innerHTML;
  dialog.querySelector('div').replaceChildren(...shown.map((one) => {
    const figure = document.createElement('figure');
    figure.append(...[...one.children].map((child) => child.cloneNode(true)));
    return figure;
  }));
  dialog.showModal();
  watchLabels(dialog);
});

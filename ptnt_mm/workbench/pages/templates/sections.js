'use strict';

// ---- Sections: on a phone only the first is open at first, and a link opens the one that it names

const sections = [...document.querySelectorAll('details.section')];
const openAll = document.getElementById('open-all');

function nameButton() {
  openAll.textContent = sections.some((section) => !section.open) ? 'Open all' : 'Close all';
}

function reveal(id) {
  const target = document.getElementById(id);
  for (let section = target?.closest('details'); section; section = section.parentElement.closest('details')) {
    section.open = true;
  }
  target?.scrollIntoView();
}

if (matchMedia('screen and (max-width: 40rem)').matches) {
  for (const section of sections.slice(1)) section.open = false;
}
for (const section of sections) section.addEventListener('toggle', nameButton);
openAll.addEventListener('click', () => {
  const open = sections.some((section) => !section.open);
  for (const section of sections) section.open = open;
});
for (const link of document.querySelectorAll('a[href^="#"]')) {
  link.addEventListener('click', () => reveal(link.hash.slice(1)));
}
if (location.hash) reveal(location.hash.slice(1));
nameButton();

// Puts what has changed in its place. The page is whole without it.
'use strict';
const lost = document.getElementById('lost'), live = document.getElementById('live');
const later = new Map();
let heard = Date.now(), since = null, source = null;

// Not under the hands of somebody: a text that is being selected stays until it is not any more.
function isHeld(element) {
  const selection = getSelection();
  return selection.type === 'Range' && element.contains(selection.anchorNode);
}
function put(id, html) {
  const element = document.getElementById(id);
  if (!element || element.innerHTML === html) return;
  if (isHeld(element)) { later.set(id, html); return; }
  later.delete(id);
  const inside = 'a[href], button, [tabindex]';
  const focused = element.contains(document.activeElement) ? [...element.querySelectorAll(inside)].indexOf(document.activeElement) : -1;
  element.innerHTML = html;
  if (focused >= 0) (element.querySelectorAll(inside)[focused] || document.getElementById('main')).focus({preventScroll: true});
  showButtons(element);
}
function order(id, children) {
  const parent = document.getElementById(id);
  if (!parent) return;
  const focused = document.activeElement;
  children.forEach((child, index) => {
    const element = document.getElementById(child) || Object.assign(document.createElement(parent.dataset.child), {id: child});
    if (parent.children[index] !== element) parent.insertBefore(element, parent.children[index] || null);
  });
  while (parent.children.length > children.length) parent.lastElementChild.remove();
  if (focused !== document.activeElement && focused.isConnected) focused.focus({preventScroll: true});
}
function take(event) {
  const message = JSON.parse(event.data);
  // Another binlogd answers: its page may look otherwise.
  if (message.assets !== document.body.dataset.assets) { location.reload(); return; }
  heard = Date.now(); since = null; lost.hidden = true;
  live.textContent = 'live'; live.className = 'live on';
  document.getElementById('clock').textContent = message.at;
  if (document.title !== message.title) document.title = message.title;
  for (const [id, children] of Object.entries(message.lists || {})) order(id, children);
  for (const [id, html] of Object.entries(message.parts || {})) put(id, html);
}
function listen() {
  if (source) source.close();
  source = new EventSource(document.body.dataset.events);
  source.onmessage = take;
}
// An old page that looks like a new one is the worst that can be shown.
setInterval(() => {
  if (!document.getElementById('lost').hidden || Date.now() - heard > 10000) {
    if (!since) {
      since = document.getElementById('clock').textContent;
      lost.textContent = 'binlogd does not answer: what you see is as of ' + since + '. Asking again.';
      lost.hidden = false; live.textContent = 'old'; live.className = 'live';
    }
    if (source.readyState === EventSource.CLOSED || Date.now() - heard > 20000) { heard = Date.now() - 10001; listen(); }
  }
  for (const [id, html] of later) put(id, html);
}, 1000);
function showButtons(within) { for (const button of within.querySelectorAll('button[data-copy]')) button.hidden = false; }
document.addEventListener('click', async event => {
  const button = event.target.closest('button[data-copy]');
  if (!button) return;
  const code = document.getElementById(button.dataset.copy);
  try { await navigator.clipboard.writeText(code.textContent); button.textContent = 'Copied'; }
  catch { getSelection().selectAllChildren(code); button.textContent = 'Selected: copy with the keyboard'; }
  setTimeout(() => { button.textContent = 'Copy'; }, 3000);
});
// What happened by a form is told once, not at each reload.
if (document.getElementById('did')) history.replaceState(null, '', location.pathname);
showButtons(document);
listen();

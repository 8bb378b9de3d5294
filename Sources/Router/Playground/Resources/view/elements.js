// Small helpers to make elements. Text is always set as text, never as HTML: names and messages are strangers'.

/** `make('button', {className, …}, ...children)`; properties are set as properties. */
export function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.includes('-')) element.setAttribute(name, value);
    else element[name] = value;
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

/** One of the symbols at the end of index.html. */
export function icon(name) {
  const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  svg.setAttribute('class', 'icon');
  svg.setAttribute('aria-hidden', 'true');
  const use = document.createElementNS('http://www.w3.org/2000/svg', 'use');
  use.setAttribute('href', `#icon-${name}`);
  svg.append(use);
  return svg;
}

/** A round button with a symbol; `label` is its name for screen readers and its tooltip. */
export function iconButton(name, label, onclick) {
  return make('button', { type: 'button', className: 'icon-button', title: label, 'aria-label': label, onclick },
    icon(name));
}

export const byId = (id) => document.getElementById(id);

/** For when what has the keyboard's focus is about to go. Where nothing may be controlled, mute can be. */
export function passFocus() {
  const control = byId('play-pause').disabled ? byId('mute') : byId('play-pause');
  control.focus({ preventScroll: true });
}

/** Says something to screen readers that others can see. The same words twice are said twice. */
export function announce(text) {
  const announcer = byId('announcer');
  announcer.textContent = announcer.textContent === text ? `${text}\u00a0` : text;
}

/** Empties, fills and shows a line that may have nothing to say. */
export function say(element, message, ...hint) {
  element.replaceChildren(make('strong', { textContent: message }), message ? ' ' : '', ...hint);
  element.hidden = false;
}

/** A control that is disabled loses the keyboard's focus: the big button takes it. */
export function setDisabled(control, isDisabled) {
  const hadFocus = control === document.activeElement;
  control.disabled = isDisabled;
  if (isDisabled && hadFocus) passFocus();
}

/** Closes a dialog by a click beside it: on its own backdrop. */
export function closeByBackdrop(dialog) {
  dialog.addEventListener('click', ({ target }) => {
    if (target === dialog) dialog.close();
  });
}

/** Writes only what has changed, so that screen readers and the layout are left in peace. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

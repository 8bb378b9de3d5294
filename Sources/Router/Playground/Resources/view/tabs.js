// Tabs, and the panels they open; the arrow keys go from one to the next.

export class Tabs {
  #tabs;
  #panels;
  #onOpen;

  /** `onOpen(i)` is called after every opening. */
  constructor(tabs, { onOpen = () => {} } = {}) {
    this.#tabs = tabs;
    this.#panels = tabs.map((tab) => document.getElementById(tab.getAttribute('aria-controls')));
    this.#onOpen = onOpen;
    tabs.forEach((tab, i) => {
      tab.onclick = () => this.open(i);
      tab.onkeydown = (event) => this.#turn(event, i);
    });
  }

  open(chosen) {
    this.#tabs.forEach((tab, i) => {
      tab.setAttribute('aria-selected', String(i === chosen));
      tab.tabIndex = i === chosen ? 0 : -1;
      this.#panels[i].hidden = i !== chosen;
    });
    this.#onOpen(chosen);
  }

  #turn(event, i) {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const next = (i + step + this.#tabs.length) % this.#tabs.length;
    this.open(next);
    this.#tabs[next].focus();
  }
}

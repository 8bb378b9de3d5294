// Dragging a row of the queue: by its handle with a finger or a pen, by any part of it with a mouse. A line marks where
// it would go; near an edge the list scrolls by itself; Escape and a lost pointer change nothing.

/** A mouse that moves less than this clicks. */
const START_PX = 5;
/** A click this soon after a drag is its end. */
const CLICK_MS = 50;
/** So near to an edge scrolling begins, and this is its greatest speed, at the edge itself. */
const EDGE_PX = 56;
const MAX_SCROLL_PX = 14;

export class QueueDrag {
  #list;
  #onDrop;
  #onEnd;
  /** `{row, pointerId, startY, startScroll, y, isActive, before, frame}` while a pointer is down. */
  #drag = null;
  #endedAtMs = -Infinity;
  #mark = Object.assign(document.createElement('li'), { className: 'drop-mark', ariaHidden: 'true' });

  /**
   * `onDrop(id, beforeID)` is called where a row was let go: before another one, or, null, at the end; `onEnd()` after
   * every drag.
   */
  constructor(list, { onDrop, onEnd }) {
    this.#list = list;
    this.#onDrop = onDrop;
    this.#onEnd = onEnd;
    list.addEventListener('pointerdown', (event) => this.#down(event));
    list.addEventListener('pointermove', (event) => this.#move(event));
    list.addEventListener('pointerup', (event) => this.#up(event));
    list.addEventListener('pointercancel', () => this.#finish());
    // A finger is at first held by what it touched, which loses it to the list.
    list.addEventListener('lostpointercapture', ({ target }) => target === list && this.#finish());
    // The click that ends a drag plays nothing.
    list.addEventListener('click', (event) => this.#swallow(event), { capture: true });
    addEventListener('keydown', (event) => {
      if (event.key === 'Escape' && this.#drag) this.#finish();
    });
  }

  get isActive() {
    return this.#drag?.isActive === true;
  }

  #down(event) {
    const row = event.target.closest('.track-row');
    const handle = event.target.closest('.handle');
    const isOtherButton = event.target.closest('.icon-button');
    if (!row || event.button !== 0 || isOtherButton || !row.querySelector('.handle')) return;
    if (event.pointerType !== 'mouse' && !handle) return;
    this.#drag = {
      row, pointerId: event.pointerId, startY: event.clientY, startScroll: this.#scroller().scrollTop, y: event.clientY,
      isActive: false, before: null, frame: 0,
    };
  }

  #move(event) {
    const drag = this.#drag;
    if (!drag || event.pointerId !== drag.pointerId) return;
    drag.y = event.clientY;
    if (drag.isActive) this.#place();
    else if (Math.abs(drag.y - drag.startY) >= START_PX) this.#begin();
  }

  #begin() {
    const drag = this.#drag;
    drag.isActive = true;
    getSelection().removeAllRanges();
    this.#list.setPointerCapture(drag.pointerId);
    this.#list.classList.add('is-dragging');
    drag.row.classList.add('is-dragged');
    const scrollOn = () => {
      this.#scroll();
      drag.frame = requestAnimationFrame(scrollOn);
    };
    scrollOn();
  }

  /** Moves the row under the pointer, and the mark to where it would go. */
  #place() {
    const { row, y, startY, startScroll } = this.#drag;
    row.style.transform = `translateY(${y - startY + this.#scroller().scrollTop - startScroll}px)`;
    const others = [...this.#list.children].filter((other) => other !== row && other !== this.#mark);
    const before = others.find((other) => {
      const { top, height } = other.getBoundingClientRect();
      return y < top + height / 2;
    }) ?? null;
    this.#drag.before = before;
    if (before ? this.#mark.nextSibling !== before : this.#list.lastChild !== this.#mark) {
      this.#list.insertBefore(this.#mark, before);
    }
  }

  #scroll() {
    const scroller = this.#scroller();
    const { top, bottom } = this.#window(scroller);
    const { y } = this.#drag;
    const depth = y < top + EDGE_PX ? (y - top) / EDGE_PX - 1 : Math.max(0, 1 - (bottom - y) / EDGE_PX);
    if (depth !== 0) scroller.scrollTop += Math.max(-1, Math.min(1, depth)) * MAX_SCROLL_PX;
    this.#place();
  }

  /** The list itself where it scrolls; on a phone it is the page. */
  #scroller() {
    const isOwn = getComputedStyle(this.#list).overflowY === 'auto';
    return isOwn ? this.#list : document.scrollingElement;
  }

  /** What can be seen of the scroller: the page ends at the dock. */
  #window(scroller) {
    if (scroller === this.#list) return this.#list.getBoundingClientRect();
    return { top: 0, bottom: document.querySelector('.dock').getBoundingClientRect().top };
  }

  #up(event) {
    const drag = this.#drag;
    if (!drag || event.pointerId !== drag.pointerId) return;
    const { row, before, isActive } = drag;
    this.#finish();
    if (isActive) this.#onDrop(row.dataset.id, before?.dataset.id ?? null);
  }

  #finish() {
    const drag = this.#drag;
    if (!drag) return;
    this.#drag = null;
    cancelAnimationFrame(drag.frame);
    if (!drag.isActive) return;
    this.#endedAtMs = performance.now();
    this.#mark.remove();
    this.#list.classList.remove('is-dragging');
    drag.row.classList.remove('is-dragged');
    drag.row.style.transform = '';
    if (this.#list.hasPointerCapture(drag.pointerId)) this.#list.releasePointerCapture(drag.pointerId);
    this.#onEnd();
  }

  #swallow(event) {
    if (performance.now() - this.#endedAtMs > CLICK_MS) return;
    event.preventDefault();
    event.stopPropagation();
  }
}

// Loads the page again when a part of it could not be loaded: the device's network has changed meanwhile, or the server has been
// restarted. A script and no module, since one module that is missing keeps all of them from running.
(() => {
  const FIRST_WAIT_MS = 500;
  const LAST_WAIT_MS = 15_000;
  /** So that the pages of one server do not come back all at once, a wait is cut by up to this share. */
  const JITTER = 0.4;
  /** Without its sound a page can be used: it is given up after so many times. */
  const MOST_FOR_SOUND = 5;
  let isUnderway = false;

  addEventListener('error', ({ target }) => {
    if (target instanceof HTMLScriptElement || target.rel === 'stylesheet') loadAgain();
  }, true);
  // Told by who loads a worker or a worklet.
  addEventListener('sound-missing', () => loadAgain(MOST_FOR_SOUND));

  async function loadAgain(most = Infinity) {
    let times = history.state?.loads ?? 0;
    if (isUnderway || times >= most) return;
    isUnderway = true;
    do {
      const waitMs = Math.min(LAST_WAIT_MS, FIRST_WAIT_MS * 2 ** times) * (1 - JITTER * Math.random());
      await new Promise((resolve) => setTimeout(resolve, waitMs));
      times += 1;
      // Without a server the browser would show a page of its own, from which nothing leads back.
    } while (!(await isServerThere()));
    history.replaceState({ ...history.state, loads: times }, '');
    location.reload();
  }

  const isServerThere = () => fetch(location.href).then(({ ok }) => ok, () => false);
})();

// The inks of the sky, as the page's styles have them, and the light around a star in each of them.

const ROLES = ['melody', 'harmony', 'bass', 'percussion', 'bed'];
const HALO_PX = 64;

export class SkyColors {
  #inks = {};
  #halos = {};
  line;
  faint;
  label;

  constructor() {
    const style = getComputedStyle(document.documentElement);
    const value = (name) => style.getPropertyValue(name).trim();
    for (const role of ROLES) {
      this.#inks[role] = value(`--voice-${role}`);
      this.#halos[role] = halo(this.#inks[role]);
    }
    this.line = value('--line');
    this.faint = value('--faint');
    this.label = `italic 12.5px ${value('--serif')}`;
  }

  ink(role) {
    return this.#inks[role] ?? this.faint;
  }

  halo(role) {
    return this.#halos[role] ?? this.#halos.bed;
  }
}

/** Drawn once: a gradient for each star and frame would cost more than all the rest. */
function halo(color) {
  const canvas = Object.assign(document.createElement('canvas'), { width: HALO_PX, height: HALO_PX });
  const context = canvas.getContext('2d');
  const gradient = context.createRadialGradient(HALO_PX / 2, HALO_PX / 2, 0, HALO_PX / 2, HALO_PX / 2, HALO_PX / 2);
  for (const [place, alpha] of [[0, 100], [0.16, 62], [0.42, 20], [0.7, 6], [1, 0]]) {
    gradient.addColorStop(place, `color-mix(in srgb, ${color} ${alpha}%, transparent)`);
  }
  context.fillStyle = gradient;
  context.fillRect(0, 0, HALO_PX, HALO_PX);
  return canvas;
}

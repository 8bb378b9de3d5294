// The small line of numbers under the player.

import { byId, setText } from './elements.js';
import { countLabel } from './format.js';

export class Statistics {
  show({ framesReceived, lost, bufferedMs, latencyMs, targetMs, underruns, player }) {
    setText(byId('stat-frames'), countLabel(framesReceived));
    setText(byId('stat-lost'), countLabel(lost));
    setText(byId('stat-buffered'), `${Math.round(bufferedMs)} ms`);
    setText(byId('stat-latency'), latencyMs === null ? '–' : `${Math.round(latencyMs)} ms`);
    byId('stat-buffered').title = targetMs === null ? ''
      : `aiming for ${Math.round(targetMs)} ms; ran dry ${underruns} times`;
    document.querySelector('.statistics').dataset.player = player;
  }
}

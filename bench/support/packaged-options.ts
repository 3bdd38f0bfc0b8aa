import { readFileSync } from 'node:fs';

/** V8's options in the packages' systemd unit (a larger young generation), for servers and baselines alike. */
export function packagedOptions(): string {
  const unit = readFileSync(new URL('../../systemd/klatch.service', import.meta.url), 'utf8');
  const options = /^Environment=NODE_OPTIONS=(.+)$/m.exec(unit)?.[1];
  if (options === undefined) throw new Error('systemd/klatch.service sets no NODE_OPTIONS');
  return options;
}

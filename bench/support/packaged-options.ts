import { readFileSync } from 'node:fs';

/** The options of V8 in the unit of the packages: servers and baselines have the same room for new objects. */
export function packagedOptions(): string {
  const unit = readFileSync(new URL('../../systemd/klatch.service', import.meta.url), 'utf8');
  const options = /^Environment=NODE_OPTIONS=(.+)$/m.exec(unit)?.[1];
  if (options === undefined) throw new Error('systemd/klatch.service sets no NODE_OPTIONS');
  return options;
}

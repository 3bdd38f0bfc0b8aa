// A process that writes its witness repeatedly, without a pause, until it is killed: `node witness-writing-node.ts
// <data-dir>`. It prints a line after each write.
import { writeSync } from 'node:fs';
import { writeWitnessFile, type WitnessRow } from '../../src/data-dir/witness-file.ts';

const dataDir = process.argv[2]!;
for (let version = 1; ; version += 1) {
  const heads = Array.from({ length: 1_000 }, (_, n): WitnessRow => [
    n + 1,
    version,
    version,
    version,
    version,
    version,
  ]);
  await writeWitnessFile(dataDir, { storeId: 'a database', logEpoch: version, heads });
  writeSync(1, `${version}\n`);
}

// A process that upgrades the database cluster of a data directory and kills itself at a step: `node upgrading.ts
// <server.conf> <step>`. Without a step, or if it never reaches that step, it prints the result of `upgradeCluster`.
import { loadConfig } from '../../src/config/load.ts';
import { upgradeCluster } from '../../src/storage/backup/upgrade-cluster.ts';

const [file, last] = process.argv.slice(2);
const { config } = loadConfig(file!, { env: {} });
const upgraded = await upgradeCluster(config, {
  klatchVersion: '0.0.0-test',
  oldBinDir: null,
  log: () => {},
  onStep: (step) => {
    if (step === last) process.kill(process.pid, 'SIGKILL');
  },
});
process.stdout.write(JSON.stringify(upgraded));

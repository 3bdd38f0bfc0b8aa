// A process that migrates a database: `node migrating-node.ts <JSON of its ConnectionTarget>` prints the applied
// migrations.
import type { ConnectionTarget } from '../../src/storage/db/connection.ts';
import { migrate } from '../../src/storage/db/migrate.ts';
import { Pool } from '../../src/storage/db/pool.ts';

const target = JSON.parse(process.argv[2]!) as ConnectionTarget;
const pool = new Pool(target, { name: 'migrate', maxConnections: 1, maxWaitingCalls: 1, timeoutMs: 30_000 });
process.stdout.write(JSON.stringify(await migrate(pool)));
pool.stop();

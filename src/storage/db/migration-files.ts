import { listAssets, readAsset } from '../../assets.ts';

/** The identity of a migration: the number gives the order, the name distinguishes it from another program's. */
export interface MigrationId {
  readonly version: number;
  readonly name: string;
}

/** One step of the schema, with its statements. */
export interface Migration extends MigrationId {
  readonly sqlText: string;
}

/** The migrations of this program, in order. */
export function listMigrations(): (MigrationId & { file: string })[] {
  return orderMigrations(listAssets('storage/migrations').filter((file) => file.endsWith('.sql')));
}

/** The migrations of this program with their statements, in order. */
export function readMigrations(): Migration[] {
  return listMigrations().map(({ file, ...id }) => ({ ...id, sqlText: readAsset(`storage/migrations/${file}`) }));
}

/** Puts files named `<number>-<name>.sql` in the order of their numbers; throws unless these are 1, 2, 3 … */
export function orderMigrations(files: readonly string[]): (MigrationId & { file: string })[] {
  const steps = files.map((file) => {
    const [, number, name] = /^(\d+)-(.+)\.sql$/.exec(file) ?? [];
    if (number === undefined || name === undefined)
      throw new Error(`migration ${file} is not named <number>-<name>.sql`);
    return { version: Number(number), name, file };
  });
  steps.sort((a, b) => a.version - b.version);
  steps.forEach((step, index) => {
    if (step.version > index + 1) throw new Error(`migration ${index + 1} is missing`);
    if (step.version < index + 1) throw new Error(`${step.file}: there is another migration ${step.version}`);
  });
  return steps;
}

/** The schema version of this program. */
export function newestSchemaVersion(): number {
  return listMigrations().length;
}

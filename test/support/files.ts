import { randomBytes } from 'node:crypto';
import type { Attachment } from '../../src/model/attachment.ts';
import type { TestDatabase } from './database.ts';

/** Inserts the row of a file, by default of a stored one. No store has its bytes. */
export async function insertFile(
  server: { readonly database: TestDatabase },
  owner: number,
  changes: Partial<Attachment> & { state?: 'uploading' | 'stored' | 'removed' } = {},
): Promise<Attachment> {
  const { state = 'stored', ...given } = changes;
  const id = randomBytes(16).toString('base64url');
  const file: Attachment = { id, name: 'report.pdf', type: 'application/pdf', size: 12_345, ...given };
  await server.database.query(
    (sql) => sql`
      insert into file (id, owner_id, name, type, size, received, state)
      values (${file.id}, ${owner}, ${file.name}, ${file.type}, ${file.size}, ${file.size}, ${state})`,
  );
  return file;
}

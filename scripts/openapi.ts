import { openApiDocument } from '../src/operations/describe/openapi.ts';
import { operationTable } from '../src/operations/table.ts';
import { readVersion } from '../src/version.ts';

/** Renders docs/openapi.json: the operations for generators of clients. */
export function renderOpenApi(): string {
  const about = { version: readVersion(), url: 'https://chat.example.org' };
  return `${JSON.stringify(openApiDocument(operationTable().values(), about), null, 1)}\n`;
}

import { openApiDocument } from '../src/operations/describe/openapi.ts';
import { operationTable } from '../src/operations/table.ts';
import { readVersion } from '../src/version.ts';

/** docs/openapi.json: the operations for programs that make clients. */
export function renderOpenApi(): string {
  const about = { version: readVersion(), url: 'https://chat.example.org' };
  return `${JSON.stringify(openApiDocument(operationTable().values(), about), null, 1)}\n`;
}

import { errorKinds } from '../src/errors.ts';
import { scopeMeanings } from '../src/model/scopes.ts';
import {
  commonErrors,
  describeOperation,
  isForHttp,
  type JsonSchema,
} from '../src/operations/describe/operation-docs.ts';
import { alternativesOf, fieldsOf } from '../src/operations/describe/schema-fields.ts';
import type { Operation } from '../src/operations/core/operation.ts';
import { operationTable } from '../src/operations/table.ts';
import { examples } from './api-examples.ts';
import { plain } from './markdown.ts';

const HEAD = `Everything that clients, bots and the command line do with a Klatch server is an operation: a name, an input and an
output, both JSON objects. Each is served in three ways from one definition:

- \`POST /v1/api/<operation>\` of the HTTP interface, which this page is about. [openapi.json](openapi.json) says the same for programs; a server gives its own at \`GET /v1/openapi.json\`.
- JSON-RPC 2.0 on ws:// and tcp://, with the changes of conversations as they happen: [live-protocol.md](live-protocol.md). The operation is \`method\`, its input \`params\`, its output \`result\`.
- the command line on the server's machine, for administration: [command-line.md](command-line.md). \`klatch api list\` and \`klatch api describe <operation>\` print what stands here.

## A call

\`\`\`sh
curl https://chat.example.org/v1/api/messages.history \\
  -H 'Authorization: Bearer kls_…' \\
  -H 'Content-Type: application/json' \\
  -d '{"conversation": 7, "limit": 20}'
\`\`\`

The body is the input, as JSON in UTF-8; without a body the input is \`{}\`. A key that the operation does not know is refused, so that a misspelt one is not taken for obeyed. Texts are valid Unicode without NUL. The answer is 200 with the output. It may get more fields in later versions: leave alone what you do not know. Times are ISO 8601 in UTC.

## Who calls

\`Authorization: Bearer <token>\` says who calls. People get a token (\`kls_…\`) when they sign in (\`auth.start\`); it is good for everything that they may do. A person makes tokens (\`klb_…\`) for bots of their own: those have scopes, and may end. Without the header nobody calls, which is enough for some operations. A token that does not exist, or no longer, is refused whatever the operation, with 401 and \`WWW-Authenticate\`; who tries many is answered late. A page of \`http.base-uri\` has the session cookie instead: [web.md](web.md).

SCOPES

What a caller is no member of does not exist for them: the answer is \`not_found\`, whether it is there or not.

## Errors

Every answer but 200 holds a sentence for people and a code for programs, over JSON-RPC as \`error.message\` and \`error.data.code\`:

\`\`\`json
{ "message": "You are in no conversation 7: look at the list of yours", "code": "not_found" }
\`\`\`

Each operation names its own below. These can meet every request:

COMMON

\`Retry-After\` (seconds) comes with those that a repeat can mend. [operations.md](operations.md#what-callers-were-told) explains every code.

## Pages

A list takes \`limit\` and answers \`next\`: give it as \`after\` (or \`before\`, where a list goes backwards) to go on; null says that this was all. What was added or removed between two pages neither repeats nor hides anything else.

## Bounds

A body has at most 64 KiB, of \`messages.send\` and \`messages.edit\` \`http.max-body-size\` (413), and holds at most 500 values and 8 levels. An operation that needs no token takes 16 KiB of 50 values, which are not compressed (413, 400, 415). [Limits of what is parsed](input-limits.md) has all of them. A session may make \`limits.session-rate\` requests a second after a burst of \`limits.session-burst\`, then it is told \`rate_limited\`; who calls without a token shares that with their address. Administrators find all bounds in [configuration.md](configuration.md).`;

/** Renders docs/api.md: every operation that clients can call, by noun. */
export function renderApi(): string {
  const served = [...operationTable().values()].filter(({ who }) => who !== 'system');
  const nouns = [...new Set(served.map(nounOf))];
  const parts = ['# Operations', '<!-- Made by scripts/docs.ts from src/operations. Do not edit. -->', head()];
  parts.push('## All operations', contents(served));
  for (const noun of nouns) {
    parts.push(`## ${noun}`);
    for (const each of served) if (nounOf(each) === noun) parts.push(section(each));
  }
  parts.push('## Shapes', 'What looks the same wherever it appears, in the changes on live connections too.');
  parts.push(...shapesOf(served).map(([name, schema]) => shape(name, schema)));
  return `${parts.join('\n\n')}\n`;
}

const nounOf = ({ name }: Operation): string => name.split('.', 1)[0]!;

function head(): string {
  const scopes = table(
    ['Scope', 'What it is good for'],
    Object.entries(scopeMeanings).map(([scope, meaning]) => [`\`${scope}\``, meaning]),
  );
  return HEAD.replace('SCOPES', scopes).replace('COMMON', errorTable(commonErrors));
}

function contents(operations: readonly Operation[]): string {
  const rows = operations.map(({ name, summary }) => [`[\`${name}\`](#${anchorOf(name)})`, plain(summary)]);
  return table(['Operation', 'What it does'], rows);
}

const anchorOf = (name: string): string => name.replaceAll('.', '').toLowerCase();

function section(operation: Operation): string {
  const { name, summary, who, errors, input, output } = describeOperation(operation);
  const example = examples[name];
  return [
    `### ${name}`,
    plain(summary),
    `Who may: ${who}${isForHttp(operation) ? '' : ' On [live connections](live-protocol.md) only.'}`,
    ...fieldTable('Input', input),
    ...(example === undefined ? [] : [`\`\`\`json\n${JSON.stringify(example)}\n\`\`\``]),
    ...fieldTable('Output', output),
    ...(errors.length === 0 ? [] : [`Errors: ${errors.map((code) => `\`${code}\``).join(', ')}.`]),
  ].join('\n\n');
}

function fieldTable(title: 'Input' | 'Output', schema: JsonSchema): string[] {
  const alternatives = alternativesOf(schema);
  if (alternatives.length > 1) {
    return alternatives.flatMap((each, index) => [...(index === 0 ? [] : ['or']), ...fieldTable(title, each)]);
  }
  if (schema.$ref !== undefined) return [`${title}: ${typeCell(`<${schema.$ref.split('/').at(-1)!}>`)}.`];
  const fields = fieldsOf(schema);
  if (fields.length === 0) return [`${title}: nothing.`];
  const need = title === 'Input' ? 'Needed' : 'There';
  const rows = fields.map(({ path, type, required, defaultValue, description }) => [
    `\`${path}\``,
    typeCell(type),
    required && defaultValue === null ? (title === 'Input' ? 'yes' : 'always') : '',
    [defaultValue === null || title === 'Output' ? '' : `Without it: \`${defaultValue}\`.`, plain(description)]
      .filter((text) => text !== '')
      .join(' '),
  ]);
  return [table([title, 'What it is', need, ''], rows)];
}

/** Turns the name of a shape in a type, such as `<Message>`, into a link to the shape's section. */
function typeCell(type: string): string {
  return type.replace(/<(\w+)>/g, (_, name: string) => `[${name}](#${name.toLowerCase()})`).replaceAll('|', '\\|');
}

function shape(name: string, schema: JsonSchema): string {
  return [`### ${name}`, ...fieldTable('Output', schema)].join('\n\n');
}

function shapesOf(operations: readonly Operation[]): [string, JsonSchema][] {
  const all = operations.flatMap((operation) => Object.entries(describeOperation(operation).shapes));
  return [...new Map(all)].sort(([a], [b]) => (a < b ? -1 : 1));
}

function errorTable(codes: typeof commonErrors): string {
  const rows = codes.map((code) => [`\`${code}\``, String(errorKinds[code].status), plain(errorKinds[code].sentence)]);
  return table(['Code', 'Status', 'Sentence, where the call knows nothing better'], rows);
}

function table(heading: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (row: readonly string[]): string => `| ${row.join(' | ')} |`;
  return [line(heading), `|${'---|'.repeat(heading.length)}`, ...rows.map(line)].join('\n');
}

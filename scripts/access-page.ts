import { callerMeanings, matrix, scopesByHand } from '../test/access/matrix.ts';
import { callers, readMatrix, readScopes } from '../test/access/read-matrix.ts';

const HEAD = `This page says who may call which [operation](api.md). People write the table, in \`test/access/matrix.ts\`. A test calls
every operation as each caller, over HTTP, and compares each answer with the table. An operation without a row fails the
test.

- A caller who is not in a group or conversation gets \`not_found\`, as if it did not exist.
- Administrators of the installation (\`administrator\`) may do to a group what its owner may. They cannot read its messages unless they become members, which a notice shows to the group. They learn nothing of private conversations. But they make sign-in links (\`klatch user invite\`), and a person who opens such a link is signed in as that account. So trust administrators with everything.
- A private conversation has no integration token and no reverse webhooks. The server refuses operations that would give it one (\`not_a_group\`), for both of its members.
- The table does not have \`klatch send\` and the other commands on the server's own machine. Everybody who may open the control socket may use them.`;

/** Renders docs/access.md from test/access/matrix.ts, which a test compares with the answers of a server. */
export function renderAccess(): string {
  const meanings = table(
    ['Caller', 'Meaning'],
    Object.entries(callerMeanings).map(([caller, meaning]) => [`**${caller}**`, meaning]),
  );
  const scopes = readScopes(scopesByHand);
  const rows = readMatrix(matrix).map(({ operation, about, cells }) => [
    `[\`${operation}\`](api.md#${operation.replaceAll('.', '')})${about === null ? '' : ` ${about}`}`,
    scopes.get(operation) === null ? '' : `\`${scopes.get(operation)}\``,
    ...callers.map((caller) => (cells[caller] === 'yes' ? '**yes**' : `\`${cells[caller]}\``)),
  ]);
  return `${[
    '# Who may call which operation',
    '<!-- Made by scripts/docs.ts from test/access/matrix.ts. Do not edit. -->',
    HEAD,
    meanings,
    '## Operations',
    table(['Operation', 'Scope', ...callers], rows),
  ].join('\n\n')}\n`;
}

function table(heading: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (row: readonly string[]): string => `| ${row.join(' | ')} |`;
  return [line(heading), `|${'---|'.repeat(heading.length)}`, ...rows.map(line)].join('\n');
}

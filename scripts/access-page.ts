import { callerMeanings, matrix, scopesByHand } from '../test/access/matrix.ts';
import { callers, readMatrix, readScopes } from '../test/access/read-matrix.ts';

const HEAD = `Who may call which [operation](api.md), as it is meant: the table is written by hand, in \`test/access/matrix.ts\`, and a
test calls every operation as everybody, over HTTP, and holds each answer against it. An operation without its line
fails that test.

- \`not_found\` is what those are told who are in no such group or conversation: the same as if it did not exist.
- Administrators of the installation (\`administrator\`) may do to a group what its owner may. What is said in it they do not read, unless they become members, which a notice in the group tells; nor do they learn of private conversations. But they make sign-in links (\`klatch user invite\`), and whoever opens one is signed in as that account: administrators have to be trusted with everything.
- A private conversation has no integration token and no reverse webhooks. What would give it some is refused in words (\`not_a_group\`), whichever of its members asks.
- \`klatch send\` and the other commands on the server's own machine are not in the table: whoever may open the control socket may use them.`;

/** Renders docs/access.md from the matrix that the test checks. */
export function renderAccess(): string {
  const meanings = table(
    ['Caller', 'Who that is'],
    Object.entries(callerMeanings).map(([caller, meaning]) => [`**${caller}**`, meaning]),
  );
  const scopes = readScopes(scopesByHand);
  const rows = readMatrix(matrix).map(({ operation, about, cells }) => [
    `[\`${operation}\`](api.md#${operation.replaceAll('.', '')})${about === null ? '' : ` ${about}`}`,
    scopes.get(operation) === null ? '' : `\`${scopes.get(operation)}\``,
    ...callers.map((caller) => (cells[caller] === 'yes' ? '**yes**' : `\`${cells[caller]}\``)),
  ]);
  return `${[
    '# Who may what',
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

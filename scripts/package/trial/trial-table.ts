/** One action on a system, and its exit code. */
export interface Trial {
  /** The name of the system, such as `bookworm` or `bookworm, systemd`. */
  readonly system: string;
  /** The action with its state: `start, not configured`. */
  readonly action: string;
  readonly code: number;
}

/** A table in Markdown: a line for each action, a column for each system, exit codes in the cells. */
export function formatTrials(trials: readonly Trial[]): string {
  const systems = [...new Set(trials.map(({ system }) => system))];
  const actions = [...new Set(trials.map(({ action }) => action))];
  const cell = (action: string, system: string): string => {
    const codes = trials.filter((trial) => trial.action === action && trial.system === system).map(({ code }) => code);
    return [...new Set(codes)].join(', ');
  };
  const rows = [
    ['action', ...systems],
    ...actions.map((action) => [action, ...systems.map((system) => cell(action, system))]),
  ];
  const widths = rows[0]!.map((_, column) => Math.max(3, ...rows.map((row) => row[column]!.length)));
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((text, column) => text.padEnd(widths[column]!)).join(' | ')} |`;
  const rule = line(widths.map((width) => '-'.repeat(width)));
  return `${[line(rows[0]!), rule, ...rows.slice(1).map(line)].join('\n')}\n`;
}

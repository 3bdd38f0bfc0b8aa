import { eventually } from '../test/support/eventually.ts';

/** No condition of a run may take longer to come true. */
const UNTIL_MS = 60_000;

/** Asks until it is so; fails with what was waited for. */
export async function until(what: string, ask: () => boolean | Promise<boolean>, timeoutMs = UNTIL_MS): Promise<void> {
  await eventually(
    async () => ((await ask()) ? '' : `not so: ${what}`),
    (answer) => answer === '',
    timeoutMs,
  );
}

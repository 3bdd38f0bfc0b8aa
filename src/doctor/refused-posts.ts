import type { RefusedPostReport, RefusingGroup } from '../storage/groups/refused-post-report.ts';
import { countWithNoun, ok, warning, type CheckResult } from './finding.ts';

/** The maximum number of groups that are shown one by one; of the others, only the number is shown. */
export const MAX_LISTED_REFUSING_GROUPS = 5;
/** A refused post is reported for this long. */
export const RECENTLY_REFUSED_HOURS = 24;

/** Results about groups that refused posts. The text of a refused post appears in no group. */
export function evaluateRefusedPosts({ groupCount: count, groups }: RefusedPostReport): CheckResult[] {
  if (groups.length === 0) return [ok(`no group refused a post in the last ${RECENTLY_REFUSED_HOURS} hours`)];
  const found = groups.map(evaluateGroup);
  const notShownCount = count - groups.length;
  if (notShownCount > 0) {
    const todo = '"klatch group info <group>" shows what each of them refused.';
    found.push(warning(`${countWithNoun(notShownCount, 'more group')} likewise`, todo));
  }
  return found;
}

function evaluateGroup({ conversationId, posts, firstAt, lastAt, userAgent, sentence }: RefusingGroup): CheckResult {
  const senderText = userAgent === null ? 'without a User-Agent' : `from "${userAgent}"`;
  const refusalText =
    `group ${conversationId} refused ${countWithNoun(posts, 'post')} since ${firstAt.toISOString()}, ` +
    `the newest at ${lastAt.toISOString()} ${senderText}: ${sentence}`;
  const todo = `"klatch group info ${conversationId}" shows all of them; docs/callers.md has the address and the lines for each program.`;
  return warning(refusalText, todo);
}

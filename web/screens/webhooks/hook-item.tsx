import { sanitize } from '../../../client/core/safe-text.ts';
import type { AppState } from '../../core/app-state.ts';
import type { Route } from '../../core/routes.ts';
import type { ListedHook } from '../../core/webhooks/hook-api.ts';
import { shortMomentOf } from '../../words/dates.ts';
import { hookWords } from '../../words/hook-words.ts';
import { RouteLink } from '../route-link.tsx';
import { Sparkline } from './charts.tsx';
import { lastErrorOf, untilMoment } from './hook-sentences.ts';
import { HookStateMark } from './hook-state.tsx';

interface HookItemProps {
  readonly state: AppState;
  readonly hook: ListedHook;
  /** The screen of the hook. */
  readonly route: Route;
  /** True: the title of the hook's group is shown too. */
  readonly showsGroup?: boolean;
  readonly onOpen: () => void;
}

/** A hook in a list: its state, its requests of the last 24 hours, what waits, and why it fails. */
export function HookItem({ state: app, hook, route, showsGroup = false, onOpen }: HookItemProps) {
  const nowMs = Date.now();
  const { state, host, description, pending, last_day: lastDay = [] } = hook;
  return (
    <li>
      <div class="hook-head">
        <RouteLink
          state={app}
          route={route}
          label={description === null ? sanitize(host) : sanitize(description)}
          onFollow={onOpen}
        />
        <HookStateMark state={state} />
      </div>
      {showsGroup ? <p dir="auto">{sanitize(hook.group_title)}</p> : null}
      {description === null ? null : <p class="quiet">{sanitize(host)}</p>}
      <Sparkline hours={lastDay} nowMs={nowMs} />
      <dl class="figures">
        <Figure name={hookWords.pending} value={String(pending)} />
        <Figure name={hookWords.oldestPending} value={momentOrNone(hook.oldest_pending_at, hookWords.none)} />
        <Figure name={hookWords.lastDelivery} value={momentOrNone(hook.last_success_at, hookWords.never)} />
        <Figure name={hookWords.lastError} value={lastErrorOf(hook) || hookWords.none} />
        <Figure
          name={hookWords.nextAttempt}
          value={hook.next_attempt_at === null ? hookWords.none : untilMoment(hook.next_attempt_at, nowMs)}
        />
      </dl>
    </li>
  );
}

function momentOrNone(iso: string | null, none: string): string {
  return iso === null ? none : shortMomentOf(iso);
}

function Figure({ name, value }: { readonly name: string; readonly value: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </div>
  );
}

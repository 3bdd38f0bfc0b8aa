import { useMemo } from 'preact/hooks';
import type { Route } from '../../core/routes.ts';
import { HookApi, type ListedHook } from '../../core/webhooks/hook-api.ts';
import { hookWords } from '../../words/hook-words.ts';
import { words } from '../../words/words.ts';
import { useRemote } from '../remote.tsx';
import { HookItem } from '../webhooks/hook-item.tsx';
import type { SettingsPartProps } from './part-props.ts';
import { PartState } from './part-state.tsx';

/** States that need a person come first. */
const URGENCY_BY_STATE: Readonly<Record<string, number>> = { parked: 0, failing: 1, paused: 2, active: 3 };

/** The reverse webhooks of all groups that the account owns or administers; those that fail come first. */
export function ManagedHooks({ state, chat }: SettingsPartProps) {
  const api = useMemo(() => new HookApi(chat.api), [chat]);
  const hooks = useRemote(() => api.managedHooks(0), { chat, rereadsOnReconnect: true });
  const shown = (hooks.value?.hooks ?? []).toSorted((a, b) => urgencyOf(a) - urgencyOf(b));
  const next = hooks.value?.next ?? null;
  const showMore = (): void =>
    void hooks.extend(async (page) => {
      const following = await api.managedHooks(page.next ?? 0);
      return { hooks: [...page.hooks, ...following.hooks], next: following.next };
    });
  return (
    <div class="webhooks">
      <p class="quiet">{hookWords.allHooks}</p>
      <PartState chat={chat} remote={hooks} />
      {hooks.value?.hooks.length === 0 ? <p class="quiet">{hookWords.noManagedHooks}</p> : null}
      <ul class="hook-list">
        {shown.map((hook) => {
          const route = routeOf(hook);
          return (
            <HookItem key={hook.id} state={state} hook={hook} route={route} showsGroup onOpen={() => state.go(route)} />
          );
        })}
      </ul>
      {next === null ? null : (
        <button type="button" disabled={hooks.isBusy} onClick={showMore}>
          {words.showMore}
        </button>
      )}
    </div>
  );
}

function urgencyOf({ state }: ListedHook): number {
  return URGENCY_BY_STATE[state] ?? 0;
}

function routeOf({ id, group }: ListedHook): Route {
  return { screen: 'conversation', conversation: group, seq: null, panel: 'hooks', hook: id };
}

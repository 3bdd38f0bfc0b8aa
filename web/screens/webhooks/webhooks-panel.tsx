import { useEffect, useMemo, useRef } from 'preact/hooks';
import { HookApi } from '../../core/webhooks/hook-api.ts';
import { pathOf, type ConversationPanel, type Route } from '../../core/routes.ts';
import { RouteLink } from '../route-link.tsx';
import { hookWords } from '../../words/hook-words.ts';
import { integrationWords } from '../../words/integration-words.ts';
import { HookList } from './hook-list.tsx';
import { HookPage } from './hook-page.tsx';
import { Integration } from './integration.tsx';
import type { WebhookPartProps, WebhooksPanelProps } from './part-props.ts';

/** The integration of a group, the list of its reverse webhooks, or one of them. */
export function WebhooksPanel({ state, chat, entry }: WebhooksPanelProps) {
  const api = useMemo(() => new HookApi(chat.api), [chat]);
  const route = state.route.value;
  const screen = useFocusOnScreen(pathOf(route, '/'));
  if (route.screen !== 'conversation' || route.panel === undefined) return null;
  const { conversation, seq, panel, hook } = route;
  const routeTo = (to: ConversationPanel, hookOfRoute?: number): Route => {
    const base = { screen: 'conversation', conversation, seq, panel: to } as const;
    return hookOfRoute === undefined ? base : { ...base, hook: hookOfRoute };
  };
  const part: WebhookPartProps = { state, chat, entry, api, routeTo };
  const parent = routeTo(hook === undefined ? 'about' : 'hooks');
  return (
    <div class="webhooks" ref={screen} tabIndex={-1} role="group" aria-label={titleOf(panel, hook)}>
      <p>
        <RouteLink
          state={state}
          route={parent}
          label={`‹ ${hook === undefined ? hookWords.toDetails : hookWords.toHooks}`}
          onFollow={() => state.navigation.goToPanelList(parent)}
        />
      </p>
      {panel === 'integration' ? <Integration {...part} /> : null}
      {panel === 'hooks' && hook === undefined ? <HookList {...part} /> : null}
      {hook === undefined ? null : <HookPage key={hook} {...part} hook={hook} />}
    </div>
  );
}

function titleOf(panel: ConversationPanel, hook: number | undefined): string {
  if (hook !== undefined) return hookWords.hookNumber(hook);
  return panel === 'integration' ? integrationWords.title : hookWords.hooks;
}

/** The link that opened the screen may be gone, so the focus moves to the screen, which a screen reader then names. */
function useFocusOnScreen(path: string) {
  const screen = useRef<HTMLDivElement>(null);
  useEffect(() => screen.current?.focus({ preventScroll: true }), [path]);
  return screen;
}

import type { ComponentType } from 'preact';
import type { ChatState } from '../../core/chat-state.ts';
import { useEffect, useRef } from 'preact/hooks';
import { adminParts, settingsParts, type SettingsPart } from '../../core/routes.ts';
import { settingsWords } from '../../words/settings-words.ts';
import { words } from '../../words/words.ts';
import { People } from '../admin/people.tsx';
import { ServerStatusPart } from '../admin/server-status.tsx';
import { RouteLink } from '../route-link.tsx';
import { AppPasswords } from './app-passwords.tsx';
import { AppearanceSettings } from './appearance.tsx';
import { BlockedPeople } from './blocked.tsx';
import { Bots } from './bots.tsx';
import { Devices } from './devices.tsx';
import type { SettingsPartProps } from './part-props.ts';
import { ProfileSettings } from './profile.tsx';
import { Sessions } from './sessions.tsx';
import { ManagedHooks } from './managed-hooks.tsx';
import { Shortcuts } from './shortcuts.tsx';

const PARTS: Readonly<Record<SettingsPart, ComponentType<SettingsPartProps>>> = {
  profile: ProfileSettings,
  sessions: Sessions,
  'app-passwords': AppPasswords,
  devices: Devices,
  bots: Bots,
  webhooks: ManagedHooks,
  blocked: BlockedPeople,
  appearance: AppearanceSettings,
  shortcuts: Shortcuts,
  server: ServerStatusPart,
  people: People,
};

type SettingsPanelProps = SettingsPartProps & { readonly part: SettingsPart | null };

/** The list of the parts of the settings and one part; a narrow screen shows only one of the two. */
export function SettingsPanel({ state, chat, part }: SettingsPanelProps) {
  const shown = part ?? settingsParts[0];
  const Part = PARTS[shown];
  const { heading, list } = useFocusOnPart(part);
  return (
    <div class={part === null ? 'settings on-list-of-parts' : 'settings'}>
      <nav aria-label={words.settings}>
        <ul ref={list}>
          {partsOf(chat).map((each) => (
            <li key={each}>
              <RouteLink
                state={state}
                route={{ screen: 'settings', part: each }}
                isCurrent={each === shown}
                label={settingsWords.parts[each]}
                onFollow={() => state.go({ screen: 'settings', part: each }, { replaces: part !== null })}
              />
            </li>
          ))}
        </ul>
      </nav>
      <section class="settings-part" aria-labelledby="settings-part">
        <p class="to-list-of-parts">
          <RouteLink
            state={state}
            route={{ screen: 'settings', part: null }}
            label={`‹ ${settingsWords.toList}`}
            onFollow={() => state.navigation.goToPanelList({ screen: 'settings', part: null })}
          />
        </p>
        <h3 id="settings-part" ref={heading} tabIndex={-1}>
          {settingsWords.parts[shown]}
        </h3>
        <Part key={shown} state={state} chat={chat} />
      </section>
    </div>
  );
}

/** The parts that the account may use. */
function partsOf(chat: ChatState): readonly SettingsPart[] {
  return settingsParts.filter((part) => chat.account.role === 'admin' || !adminParts.has(part));
}

/**
 * On a narrow screen the element that had the focus may be hidden now. The focus then moves to the shown list or part.
 */
function useFocusOnPart(part: SettingsPart | null) {
  const heading = useRef<HTMLHeadingElement>(null);
  const list = useRef<HTMLUListElement>(null);
  useEffect(() => {
    if (isShown(document.activeElement)) return;
    const next = isShown(heading.current) ? heading.current : list.current?.querySelector('a');
    next?.focus({ preventScroll: true });
  }, [part]);
  return { heading, list };
}

function isShown(element: Element | null): boolean {
  return element instanceof HTMLElement && element.offsetParent !== null;
}

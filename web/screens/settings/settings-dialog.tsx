import type { AppState } from '../../core/app-state.ts';
import type { ChatState } from '../../core/chat-state.ts';
import type { SettingsPart } from '../../core/routes.ts';
import { words } from '../../words/words.ts';
import { useLoaded } from '../loaded.ts';
import { Modal, Problem } from '../modal.tsx';

interface SettingsDialogProps {
  readonly state: AppState;
  readonly chat: ChatState;
  /** The part of the settings to show; null: the list of the parts. */
  readonly part: SettingsPart | null;
}

const loadPanel = async () => (await import('../panels.ts')).SettingsPanel;

/** A dialog with the settings of the account and of this browser. */
export function SettingsDialog({ state, chat, part }: SettingsDialogProps) {
  const { part: Panel, hasFailed } = useLoaded(loadPanel);
  return (
    <Modal title={words.settings} isDrawer onClose={() => state.navigation.leavePanel()}>
      {Panel === null && !hasFailed ? <p class="quiet">{words.loading}</p> : null}
      {Panel === null ? null : <Panel state={state} chat={chat} part={part} />}
      <Problem sentence={hasFailed ? words.cannotLoad : null} />
    </Modal>
  );
}

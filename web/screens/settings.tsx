import type { ChatState } from '../core/chat-state.ts';
import { words } from '../words/words.ts';
import { useLoaded } from './loaded.ts';
import { Modal, Problem } from './modal.tsx';

const loadPanel = async () => (await import('./panels.ts')).AccountPanel;

/** The own account. */
export function Settings({ chat, onClose }: { readonly chat: ChatState; readonly onClose: () => void }) {
  const { part: Panel, hasFailed } = useLoaded(loadPanel);
  return (
    <Modal title={words.settings} isDrawer onClose={onClose}>
      {Panel === null ? null : <Panel chat={chat} />}
      <Problem sentence={hasFailed ? words.cannotLoad : null} />
    </Modal>
  );
}

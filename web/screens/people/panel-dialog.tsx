import type { ComponentChildren } from 'preact';
import { words } from '../../words/words.ts';
import { useLoaded } from '../loaded.ts';
import { Modal, Problem } from '../modal.tsx';

const loadPanels = () => import('../panels.ts');

interface PanelDialogProps {
  readonly title: string;
  readonly isDrawer?: boolean;
  readonly onClose: () => void;
  readonly children: (panels: Awaited<ReturnType<typeof loadPanels>>) => ComponentChildren;
}

/** A dialog whose content is fetched with its first use. */
export function PanelDialog({ title, isDrawer = false, onClose, children }: PanelDialogProps) {
  const { part: panels, hasFailed } = useLoaded(loadPanels);
  return (
    <Modal title={title} isDrawer={isDrawer} onClose={onClose}>
      {panels === null ? null : children(panels)}
      <Problem sentence={hasFailed ? words.cannotLoad : null} />
    </Modal>
  );
}

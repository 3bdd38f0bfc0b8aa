import { sanitize } from '../../client/core/safe-text.ts';
import { timelineWords } from '../words/timeline-words.ts';

/**
 * Shows who types. The line keeps its height when nobody types, so that nothing moves. `names` is called while the line
 * is drawn.
 */
export function TypingLine({ names }: { readonly names: () => readonly string[] }) {
  const typistNames = names().map(sanitize);
  return (
    <p class="typing" dir="auto">
      {typistNames.length === 0 ? '' : timelineWords.typing(typistNames)}
    </p>
  );
}

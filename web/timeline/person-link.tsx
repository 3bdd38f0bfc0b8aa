import { createContext, type ComponentChildren } from 'preact';
import { useContext } from 'preact/hooks';

/** Somebody whose card can be shown. */
export interface PersonReference {
  /** The number, or the nick where that alone is known. */
  readonly user: number | string;
  /** As the page shows them. */
  readonly name: string;
  /** What their message is signed with in place of the name; null: nothing. */
  readonly label: string | null;
}

/** What shows the card of somebody; above all that names people. */
export const ShowPerson = createContext<(person: PersonReference) => void>(() => {});

interface PersonLinkProps {
  readonly person: PersonReference;
  /** Further classes. */
  readonly class?: string;
  readonly children: ComponentChildren;
}

/** A name that shows the card of who has it. */
export function PersonLink({ person, class: further = '', children }: PersonLinkProps) {
  const show = useContext(ShowPerson);
  return (
    <button class={`person ${further}`} type="button" aria-haspopup="dialog" onClick={() => show(person)}>
      {children}
    </button>
  );
}

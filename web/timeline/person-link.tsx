import { createContext, type ComponentChildren } from 'preact';
import { useContext } from 'preact/hooks';

/** A person whose card can be opened. */
export interface PersonReference {
  /** The number of the account, or its nick if the page has only the nick, as in a mention. */
  readonly user: number | string;
  /** The name as the page shows it. */
  readonly name: string;
  /** The label that their message shows instead of the name; null: none. */
  readonly label: string | null;
}

/** The function that opens a person's card, for all components that name people. */
export const ShowPerson = createContext<(person: PersonReference) => void>(() => {});

interface PersonLinkProps {
  readonly person: PersonReference;
  /** Further CSS classes. */
  readonly class?: string;
  readonly children: ComponentChildren;
}

/** A name that opens the person's card. */
export function PersonLink({ person, class: further = '', children }: PersonLinkProps) {
  const show = useContext(ShowPerson);
  return (
    <button class={`person ${further}`} type="button" aria-haspopup="dialog" onClick={() => show(person)}>
      {children}
    </button>
  );
}

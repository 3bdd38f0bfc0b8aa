import type { AppState } from '../core/app-state.ts';
import { pathOf, type Route } from '../core/routes.ts';

interface RouteLinkProps {
  readonly state: AppState;
  readonly route: Route;
  readonly label: string;
  readonly isCurrent?: boolean;
  readonly onFollow: () => void;
}

/** A link that leads within the page; with Ctrl or Shift the browser opens its address as usual. */
export function RouteLink({ state, route, label, isCurrent = false, onFollow }: RouteLinkProps) {
  return (
    <a
      href={pathOf(route, state.place.base.pathname)}
      aria-current={isCurrent ? 'page' : undefined}
      onClick={(event) => {
        if (event.ctrlKey || event.metaKey || event.shiftKey) return;
        event.preventDefault();
        onFollow();
      }}
    >
      {label}
    </a>
  );
}

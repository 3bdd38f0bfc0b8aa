import type { CallerFormat, CallerRequest } from './core/caller-format.ts';
import { firstLine, readGitEvent, refName, alertOfRun, type GitEventReader, type RunEnding } from './core/git-event.ts';
import { oneLineEvent, pullRequestEvent, placeOf, pullRequestName, sharedReaders } from './core/github-events.ts';
import { firstStringOf, isObject, objectOf, stringOf } from './core/values.ts';

/**
 * The headers with an event's name. A fork also sends the headers of the programs that it descends from. Some events
 * have an empty name.
 */
const EVENT_HEADERS = ['x-forgejo-event', 'x-gitea-event', 'x-gogs-event'] as const;
/**
 * Each event contains one of these objects. A body in Slack's or Discord's format, which Gitea sends with the same
 * headers, contains none.
 */
const EVENT_OBJECT_KEYS = ['repository', 'sender', 'organization', 'run'] as const;

/** The webhooks of Gitea, Forgejo and Gogs in their own format. */
export const gitea: CallerFormat = {
  name: 'gitea',
  isSignedBySenders: true,
  matches: ({ body, headers }) =>
    EVENT_HEADERS.some((header) => headers[header] !== undefined) &&
    EVENT_OBJECT_KEYS.some((name) => isObject(body[name])),
  read: readGitea,
};

function readGitea(request: CallerRequest) {
  const { body, headers } = request;
  const name = eventName(headers) || stringOf(headers['x-github-event']);
  return readGitEvent(request, { name, action: stringOf(body['action']) }, readers);
}

function eventName(headers: CallerRequest['headers']): string {
  return firstStringOf(...EVENT_HEADERS.map((header) => headers[header]));
}

/**
 * Makes a reader of reviews of a pull request. Gitea has a separate event for each verdict, all with the action
 * `reviewed`.
 */
const reviewReader =
  (verb: string): GitEventReader =>
  (body) => {
    const pullRequest = objectOf(body['pull_request']);
    const { content } = objectOf(body['review']);
    return pullRequestEvent(
      body,
      `${verb} ${pullRequestName(pullRequest)}`,
      stringOf(pullRequest['html_url']),
      stringOf(content),
    );
  };

const readWiki: GitEventReader = (body) => {
  const action = stringOf(body['action']);
  if (action !== 'created' && action !== 'edited' && action !== 'deleted') return null;
  const [page, comment] = [firstLine(stringOf(body['page'])), firstLine(stringOf(body['comment']))];
  const repositoryUrl = stringOf(objectOf(body['repository'])['html_url']);
  const path = action === 'deleted' ? '/wiki' : `/wiki/${encodeURIComponent(page.toWellFormed())}`;
  return {
    ...oneLineEvent(body, `${action} wiki page ${page}`, repositoryUrl === '' ? '' : repositoryUrl + path),
    text: comment,
  };
};

const readRepository: GitEventReader = (body) => {
  const action = stringOf(body['action']);
  return action === 'created' || action === 'deleted' ? oneLineEvent(body, `${action} the repository`) : null;
};

/**
 * Makes a reader for a run of Forgejo Actions. The name of the event says how the run ended; `recover` means that the
 * previous run failed.
 */
const runReader =
  (ending: RunEnding): GitEventReader =>
  (body) => {
    const run = objectOf(body['run']);
    const repositoryName = placeOf({ repository: run['repository'] ?? body['repository'] });
    const branch = refName(stringOf(run['prettyref']));
    const workflow = firstLine(stringOf(run['workflow_id']));
    const number = stringOf(run['index_in_repo']);
    const hasFailed = ending === 'failed';
    return {
      repositoryOrOrg: branch === '' ? repositoryName : `${repositoryName}:${branch}`,
      branch,
      summary: `workflow ${workflow}${number === '' ? '' : ` #${number}`} ${hasFailed ? 'failed' : 'succeeded again'}`,
      url: stringOf(run['html_url']),
      text: hasFailed ? firstLine(stringOf(run['title'])) : '',
      mood: hasFailed ? 'danger' : 'good',
      alert: alertOfRun(ending, 'action_run', repositoryName, workflow, branch),
    };
  };

const readers: ReadonlyMap<string, GitEventReader> = new Map<string, GitEventReader>([
  ...sharedReaders,
  ['pull_request_approved', reviewReader('approved')],
  ['pull_request_rejected', reviewReader('requested changes on')],
  ['pull_request_comment', reviewReader('reviewed')],
  ['wiki', readWiki],
  ['repository', readRepository],
  ['action_run_failure', runReader('failed')],
  ['action_run_recover', runReader('recovered')],
  ['action_run_success', runReader('succeeded')],
]);

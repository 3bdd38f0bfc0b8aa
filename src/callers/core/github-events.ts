import {
  commitLine,
  commitLines,
  countOfCommits,
  excerpt,
  firstLine,
  numberedTitle,
  refName,
  alertOfRun,
  shortHash,
  type GitEvent,
  type GitEventReader,
} from './git-event.ts';
import { firstStringOf, isObject, numberOf, objectOf, stringOf, type JsonObject } from './values.ts';

/** Events as GitHub sends them. Gitea, Forgejo and Gogs send these events with a few other names of fields. */

/** The place of an event: "org/repo", or the organization if the event belongs to no repository. */
export function placeOf(body: JsonObject): string {
  const organization = objectOf(body['organization']);
  return firstStringOf(objectOf(body['repository'])['full_name'], organization['login'], organization['username']);
}

export function userName(user: unknown): string {
  const { login, username, name } = objectOf(user);
  return firstLine(firstStringOf(login, username, name)) || 'somebody';
}

const actorOf = (body: JsonObject): string => userName(body['sender'] ?? body['pusher']);

const actionOf = (body: JsonObject): string => stringOf(body['action']);
const repositoryUrl = (body: JsonObject): string => stringOf(objectOf(body['repository'])['html_url']);

/** An event that is shown as one line: the actor, and then `predicate`, such as "ada pushed 3 commits". */
export function oneLineEvent(body: JsonObject, predicate: string, url = repositoryUrl(body)): GitEvent {
  return { repositoryOrOrg: placeOf(body), summary: `${actorOf(body)} ${predicate}`, url };
}

/**
 * Reads a push. Not shown are tags, new branches without commits, and deleted branches: the events `create` and
 * `delete` report them.
 */
const readPush: GitEventReader = (body) => {
  const ref = stringOf(body['ref']);
  if (ref === '' || ref.startsWith('refs/tags/') || body['deleted'] === true) return null;
  const listedCount = Array.isArray(body['commits']) ? body['commits'].length : 0;
  const count = Math.max(listedCount, numberOf(body['total_commits']) ?? 0);
  const isForced = body['forced'] === true;
  if (count === 0 && !isForced) return null;
  const branch = refName(ref);
  const verb = isForced ? 'force-pushed' : 'pushed';
  const what = count === 0 ? `to ${shortHash(stringOf(body['after']))}` : countOfCommits(count);
  return {
    repositoryOrOrg: `${placeOf(body)}:${branch}`,
    branch,
    summary: `${actorOf(body)} ${verb} ${what}`,
    url: firstStringOf(body['compare'], body['compare_url'], repositoryUrl(body)),
    text: count === 0 ? commitLine(objectOf(body['head_commit'])) : commitLines(body['commits'], count),
  };
};

const refEventReader =
  (verb: string): GitEventReader =>
  (body) => {
    const kind = stringOf(body['ref_type']);
    if (kind !== 'branch' && kind !== 'tag') return null;
    const name = refName(stringOf(body['ref']));
    const event = oneLineEvent(body, `${verb} ${kind} ${name}`);
    return kind === 'branch' ? { ...event, branch: name } : event;
  };

const urlOf = (thing: JsonObject): string => stringOf(thing['html_url']);

const readIssue: GitEventReader = (body) => {
  const issue = objectOf(body['issue']);
  const action = actionOf(body);
  if (action !== 'opened' && action !== 'closed' && action !== 'reopened') return null;
  const isDropped = action === 'closed' && stringOf(issue['state_reason']) === 'not_planned';
  const verb = isDropped ? 'closed as not planned' : action;
  return {
    ...oneLineEvent(body, `${verb} ${numberedTitle('issue', issue['number'], issue['title'])}`, urlOf(issue)),
    text: action === 'opened' ? excerpt(stringOf(issue['body'])) : '',
  };
};

export function pullRequestName(request: JsonObject, number?: unknown): string {
  return numberedTitle('pull request', request['number'] ?? number, request['title']);
}

/** An event of a pull request. Its branch, for the query parameter `branches`, is the target of the merge. */
export function pullRequestEvent(body: JsonObject, predicate: string, url: string, text = ''): GitEvent {
  const base = objectOf(objectOf(body['pull_request'])['base']);
  return { ...oneLineEvent(body, predicate, url), text: excerpt(text), branch: stringOf(base['ref']) };
}

const readPullRequest: GitEventReader = (body) => {
  const request = objectOf(body['pull_request']);
  const name = pullRequestName(request, body['number']);
  const url = urlOf(request);
  switch (actionOf(body)) {
    case 'opened':
      return pullRequestEvent(
        body,
        `opened ${request['draft'] === true ? 'draft ' : ''}${name}`,
        url,
        stringOf(request['body']),
      );
    case 'closed':
      return pullRequestEvent(body, `${request['merged'] === true ? 'merged' : 'closed'} ${name}`, url);
    case 'reopened':
      return pullRequestEvent(body, `reopened ${name}`, url);
    case 'ready_for_review':
      return pullRequestEvent(body, `marked as ready ${name}`, url);
    default:
      return null;
  }
};

const VERBS_OF_REVIEWS: ReadonlyMap<string, string> = new Map([
  ['approved', 'approved'],
  ['changes_requested', 'requested changes on'],
  ['commented', 'reviewed'],
]);

/**
 * Reads a review. A review with the state "commented" and no text only contains comments on lines. Each of them is an
 * event of its own, so such a review is not shown.
 */
const readReview: GitEventReader = (body) => {
  const review = objectOf(body['review']);
  const state = stringOf(review['state']).toLowerCase();
  const verb = VERBS_OF_REVIEWS.get(state);
  const text = stringOf(review['body']);
  if (actionOf(body) !== 'submitted' || verb === undefined || (state === 'commented' && text.trim() === ''))
    return null;
  return pullRequestEvent(body, `${verb} ${pullRequestName(objectOf(body['pull_request']))}`, urlOf(review), text);
};

const readReviewComment: GitEventReader = (body) => {
  const comment = objectOf(body['comment']);
  if (actionOf(body) !== 'created') return null;
  const path = firstLine(stringOf(comment['path']));
  const where = pullRequestName(objectOf(body['pull_request']));
  return pullRequestEvent(
    body,
    `commented on ${path === '' ? where : `${path} in ${where}`}`,
    urlOf(comment),
    stringOf(comment['body']),
  );
};

const readIssueComment: GitEventReader = (body) => {
  const [issue, comment] = [objectOf(body['issue']), objectOf(body['comment'])];
  if (actionOf(body) !== 'created') return null;
  const isOfPullRequest = isObject(issue['pull_request']) || body['is_pull'] === true;
  const name = numberedTitle(isOfPullRequest ? 'pull request' : 'issue', issue['number'], issue['title']);
  return { ...oneLineEvent(body, `commented on ${name}`, urlOf(comment)), text: excerpt(stringOf(comment['body'])) };
};

const readRelease: GitEventReader = (body) => {
  const release = objectOf(body['release']);
  if (actionOf(body) !== 'published') return null;
  const [tag, name] = [firstLine(stringOf(release['tag_name'])), firstLine(stringOf(release['name']))];
  const label = name === '' || name === tag ? tag : `${tag}: ${name}`;
  const kind = release['prerelease'] === true ? 'pre-release' : 'release';
  return {
    ...oneLineEvent(body, `published ${kind} ${label}`, urlOf(release)),
    text: excerpt(stringOf(release['body'])),
  };
};

const readFork: GitEventReader = (body) => {
  const fork = objectOf(body['forkee']);
  return oneLineEvent(body, `forked the repository to ${firstLine(stringOf(fork['full_name']))}`, urlOf(fork));
};

const FAILURES: ReadonlySet<string> = new Set(['failure', 'timed_out', 'startup_failure']);

/** The event of a run of a workflow. A success is shown only if it is the first one after a failure. */
export function workflowRunEvent(
  body: JsonObject,
  run: { name: string; conclusion: string; branch: string; url: string; commit: string; key: readonly string[] },
): GitEvent | null {
  const hasFailed = FAILURES.has(run.conclusion);
  if (!hasFailed && run.conclusion !== 'success') return null;
  const place = placeOf(body);
  return {
    repositoryOrOrg: run.branch === '' ? place : `${place}:${run.branch}`,
    branch: run.branch,
    summary: `${run.name} ${hasFailed ? 'failed' : 'succeeded again'}`,
    url: run.url,
    text: hasFailed ? run.commit : '',
    mood: hasFailed ? 'danger' : 'good',
    alert: alertOfRun(hasFailed ? 'failed' : 'succeeded', ...run.key),
  };
}

/**
 * Reads the end of a workflow's run. The key of its alert has the repository of the branch, since a fork may have
 * branches with the same names.
 */
const readWorkflowRun: GitEventReader = (body) => {
  const [run, workflow] = [objectOf(body['workflow_run']), objectOf(body['workflow'])];
  if (actionOf(body) !== 'completed') return null;
  const name = firstLine(firstStringOf(workflow['name'], run['name'], run['display_title']));
  const number = stringOf(run['run_number']);
  const branch = stringOf(run['head_branch']);
  const source = firstStringOf(objectOf(run['head_repository'])['full_name'], placeOf(body));
  const path = stringOf(run['path']).split('@', 1)[0]!;
  return workflowRunEvent(body, {
    name: `workflow ${name}${number === '' ? '' : ` #${number}`}`,
    conclusion: stringOf(run['conclusion']),
    branch,
    url: urlOf(run),
    commit: commitLine(objectOf(run['head_commit'])) || firstLine(stringOf(run['display_title'])),
    key: ['workflow_run', source, firstStringOf(run['workflow_id'], workflow['id'], path, name), branch],
  });
};

/** The readers of the events that GitHub, Gitea, Forgejo and Gogs send, by the event's name in the header. */
export const sharedReaders: ReadonlyMap<string, GitEventReader> = new Map<string, GitEventReader>([
  ['push', readPush],
  ['create', refEventReader('created')],
  ['delete', refEventReader('deleted')],
  ['issues', readIssue],
  ['issue_comment', readIssueComment],
  ['pull_request', readPullRequest],
  ['pull_request_review', readReview],
  ['pull_request_review_comment', readReviewComment],
  ['release', readRelease],
  ['fork', readFork],
  ['workflow_run', readWorkflowRun],
]);

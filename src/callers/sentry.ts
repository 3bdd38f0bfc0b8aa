import { makeAlertUpdate } from './core/alert-update.ts';
import type { CallerFormat, CallerRequest } from './core/caller-format.ts';
import { excerpt, firstLine, numberedTitle } from './core/git-event.ts';
import {
  card,
  ignoredEvent,
  messageForm,
  type AlertUpdate,
  type Field,
  type IgnoredEvent,
  type MessageForm,
  type Mood,
} from './core/message-form.ts';
import { firstStringOf, isObject, objectOf, stringOf, type JsonObject } from './core/values.ts';
import { moodOfLevel } from './core/levels.ts';

const RESOURCE_HEADER = 'sentry-hook-resource';
const MAX_LISTED_NAMES = 5;

/** The webhooks of Sentry: those of internal and public integrations, and those of the older plugin WebHooks. */
export const sentry: CallerFormat = {
  name: 'sentry',
  isSignedBySenders: true,
  matches: ({ body, headers }) => isOfIntegration(body, headers) || isOfPlugin(body),
  read: readSentry,
};

function isOfIntegration(body: JsonObject, headers: CallerRequest['headers']): boolean {
  return stringOf(headers[RESOURCE_HEADER]) !== '' && isObject(body['data']);
}

/** True for a body from the plugin WebHooks. Such a body always has the key `level`, whose value may be null. */
function isOfPlugin(body: JsonObject): boolean {
  return isObject(body['event']) && stringOf(body['url']) !== '' && 'project_name' in body && 'level' in body;
}

type Reader = (data: JsonObject, body: JsonObject) => MessageForm | null;

function readSentry({ body, headers }: CallerRequest): MessageForm | IgnoredEvent {
  const resource = stringOf(headers[RESOURCE_HEADER]);
  const action = stringOf(body['action']);
  if (resource === '' && !isObject(body['data'])) return readPlugin(body);
  const found = readers.get(resource)?.(objectOf(body['data']), body) ?? null;
  const eventName = action === '' ? resource : `${resource}.${action}`;
  return found ?? ignoredEvent(eventName);
}

interface SentryMessageFacts {
  readonly project: string;
  readonly summary: string;
  readonly url: string;
  readonly text?: string;
  readonly fields?: readonly Field[];
  readonly mood: Mood | null;
  readonly alert?: AlertUpdate | null;
}

/** Makes the message. It may contain text that anybody sent to the failed program, so it mentions nobody. */
function formOf({
  project,
  summary,
  url,
  text = '',
  fields = [],
  mood,
  alert = null,
}: SentryMessageFacts): MessageForm {
  const title = project === '' ? summary : `[${firstLine(project)}] ${summary}`;
  return messageForm({
    cards: [card({ title, url, text, fields, mood })],
    hasStrangersText: true,
    alert,
  });
}

/**
 * The alert of an issue or a rule. Null without an id, since nothing else distinguishes two alerts of the same kind.
 */
function alertOf(kind: string, id: string, state: AlertUpdate['state']): AlertUpdate | null {
  return id === '' ? null : makeAlertUpdate(`${kind}/${id}`, state);
}

const actorOf = (body: JsonObject): string => firstLine(stringOf(objectOf(body['actor'])['name'])) || 'Sentry';

function shortFields(...pairs: readonly (readonly [string, unknown])[]): Field[] {
  return pairs
    .map(([name, value]) => ({ name, value: firstLine(stringOf(value)), isShort: true }))
    .filter(({ value }) => value !== '');
}

/** The mood for a level. An unknown level counts as an error, since Sentry mostly reports errors. */
const moodOf = (level: unknown): Mood =>
  moodOfLevel(stringOf(level)) ?? (stringOf(level) === 'debug' ? 'info' : 'danger');

/** A title such as "ReferenceError: heck is not defined"; for an event that is no exception, its message. */
function titleOf(event: JsonObject, ...more: readonly unknown[]): string {
  const { type, value } = objectOf(event['metadata']);
  const { formatted, message } = objectOf(event['logentry']);
  const exception = [stringOf(type), stringOf(value)].filter((part) => part !== '').join(': ');
  return firstLine(firstStringOf(event['title'], ...more, exception, formatted, message)) || 'an error';
}

/**
 * Makes a message of an event, which Sentry's alert rules and the plugin WebHooks send. It has no alert: nothing
 * reports that an event is resolved.
 */
function eventForm(
  event: JsonObject,
  facts: { project: string; title: string; url: string; level: unknown; rule: string; culprit: unknown },
): MessageForm {
  return formOf({
    project: facts.project,
    summary: facts.title,
    url: facts.url,
    text: firstLine(stringOf(facts.culprit)),
    fields: shortFields(
      ['Level', facts.level],
      ['Environment', event['environment']],
      ['Release', event['release']],
      ['Rule', facts.rule],
    ),
    mood: moodOf(facts.level),
  });
}

function readPlugin(body: JsonObject): MessageForm {
  const event = objectOf(body['event']);
  const rules = Array.isArray(body['triggering_rules']) ? body['triggering_rules'].slice(0, MAX_LISTED_NAMES) : [];
  return eventForm(event, {
    project: firstStringOf(body['project_slug'], body['project_name'], body['project']),
    title: titleOf(event, body['message']),
    url: stringOf(body['url']),
    level: firstStringOf(body['level'], event['level']),
    rule: rules
      .map(stringOf)
      .filter((rule) => rule !== '')
      .join(', '),
    culprit: body['culprit'],
  });
}

/** The name of an event's project. Only the event's URL has the name; the event itself has the project's number. */
function projectOfUrl(url: string): string {
  const [, path = ''] = url.split('/api/0/projects/', 2);
  return path.split('/', 2)[1] ?? '';
}

const eventReader =
  (key: 'event' | 'error'): Reader =>
  (data) => {
    const event = objectOf(data[key]);
    return eventForm(event, {
      project: projectOfUrl(stringOf(event['url'])),
      title: titleOf(event, event['message']),
      url: firstStringOf(event['web_url']),
      level: event['level'],
      rule: stringOf(data['triggered_rule']),
      culprit: event['culprit'],
    });
  };

/** The issue's short id and title, such as "FRONT-END-9: ReferenceError: heck is not defined". */
function issueName(issue: JsonObject): string {
  const id = firstLine(stringOf(issue['shortId']));
  const title = titleOf(issue);
  return id === '' ? title : `${id}: ${title}`;
}

const RETURN_PHRASES: ReadonlyMap<string, string> = new Map([
  ['regressed', 'came back'],
  ['escalating', 'is escalating'],
]);

/** Reads an event of an issue. An archived issue needs no work any more, so archiving it resolves the alert. */
const readIssue: Reader = (data, body) => {
  const issue = objectOf(data['issue']);
  const action = stringOf(body['action']);
  const [id, name] = [stringOf(issue['id']), issueName(issue)];
  const projectAndUrl = {
    project: firstStringOf(objectOf(issue['project'])['slug'], objectOf(issue['project'])['name']),
    url: firstStringOf(issue['web_url'], issue['permalink']),
  };
  const [firing, resolved] = [alertOf('issue', id, 'firing'), alertOf('issue', id, 'resolved')];
  switch (action) {
    case 'created': {
      const text = firstLine(stringOf(issue['culprit']));
      return formOf({
        ...projectAndUrl,
        summary: `new issue ${name}`,
        text,
        mood: moodOf(issue['level']),
        alert: firing,
      });
    }
    case 'unresolved': {
      const how = RETURN_PHRASES.get(stringOf(issue['substatus'])) ?? 'is unresolved again';
      return formOf({
        ...projectAndUrl,
        summary: `issue ${how}: ${name}`,
        mood: moodOf(issue['level']),
        alert: firing,
      });
    }
    case 'resolved':
      return formOf({ ...projectAndUrl, summary: `${actorOf(body)} resolved ${name}`, mood: 'good', alert: resolved });
    case 'archived':
    case 'ignored':
      return formOf({ ...projectAndUrl, summary: `${actorOf(body)} archived ${name}`, mood: 'info', alert: resolved });
    default:
      return null;
  }
};

const MOOD_BY_ALERT_ACTION: ReadonlyMap<string, Mood> = new Map<string, Mood>([
  ['critical', 'danger'],
  ['warning', 'warning'],
  ['resolved', 'good'],
]);

const readMetricAlert: Reader = (data, body) => {
  const alert = objectOf(data['metric_alert']);
  const action = stringOf(body['action']);
  const mood = MOOD_BY_ALERT_ACTION.get(action);
  if (mood === undefined) return null;
  const projects = Array.isArray(alert['projects']) ? alert['projects'].slice(0, MAX_LISTED_NAMES).map(stringOf) : [];
  const name = firstStringOf(data['description_title'], objectOf(alert['alert_rule'])['name'], alert['title']);
  return formOf({
    project: projects.filter((project) => project !== '').join(', '),
    summary: firstLine(name) || `metric alert: ${action}`,
    url: stringOf(data['web_url']),
    text: excerpt(stringOf(data['description_text'])),
    mood,
    alert: alertOf('metric_alert', stringOf(alert['id']), action === 'resolved' ? 'resolved' : 'firing'),
  });
};

const readComment: Reader = (data, body) => {
  if (stringOf(body['action']) !== 'created') return null;
  return formOf({
    project: stringOf(data['project_slug']),
    summary: `${actorOf(body)} commented on ${numberedTitle('issue', data['issue_id'], '')}`,
    url: '',
    text: excerpt(stringOf(data['comment'])),
    mood: null,
  });
};

/**
 * Reads an event about the installation of the integration. Its `code` is a secret that confirms the integration, so
 * the message does not contain it.
 */
const readInstallation: Reader = (data, body) => {
  const installation = objectOf(data['installation']);
  const organization = firstLine(stringOf(objectOf(installation['organization'])['slug']));
  switch (stringOf(body['action'])) {
    case 'created':
      return formOf({ project: '', summary: `Connected: Sentry ${organization}`.trim(), url: '', mood: null });
    case 'deleted':
      return formOf({
        project: organization,
        summary: `${actorOf(body)} removed the integration`,
        url: '',
        mood: null,
      });
    default:
      return null;
  }
};

const readers: ReadonlyMap<string, Reader> = new Map<string, Reader>([
  ['issue', readIssue],
  ['event_alert', eventReader('event')],
  ['error', eventReader('error')],
  ['metric_alert', readMetricAlert],
  ['comment', readComment],
  ['installation', readInstallation],
]);

import { moodOfLevel } from './levels.ts';
import { card, type Card, type Field, type Mood } from './message-form.ts';
import { firstStringOf, isObject, numberOf, objectOf, objectsOf, stringOf, type JsonObject } from './values.ts';

const MAX_LISTED_TITLES = 5;

const VERB_BY_EVENT_TYPE: Readonly<Record<string, string>> = {
  Grab: 'Grabbed',
  Download: 'Imported',
  ImportComplete: 'Import complete',
  Rename: 'Renamed',
  Retag: 'Tags written',
  SeriesAdd: 'Added',
  SeriesDelete: 'Deleted',
  EpisodeFileDelete: 'File deleted',
  MovieAdded: 'Added',
  MovieDelete: 'Deleted',
  MovieFileDelete: 'File deleted',
  ArtistAdd: 'Added',
  ArtistDelete: 'Deleted',
  AlbumDelete: 'Deleted',
  AuthorAdded: 'Added',
  AuthorDelete: 'Deleted',
  BookDelete: 'Deleted',
  DownloadFailure: 'Download failed',
  ImportFailure: 'Import failed',
  Health: 'Health issue',
  HealthRestored: 'Health restored',
  ApplicationUpdate: 'Updated',
  ManualInteractionRequired: 'Manual interaction required',
};
const SUBJECTS = ['series', 'movie', 'artist', 'author'] as const;

/** True for a body from the webhook of Sonarr, Radarr, Lidarr or Readarr, which have a common ancestor. */
export function isMediaEvent(body: JsonObject): boolean {
  const hasSubject = SUBJECTS.some((name) => isObject(body[name]));
  return typeof body['eventType'] === 'string' && (hasSubject || typeof body['instanceName'] === 'string');
}

export function mediaEventCard(body: JsonObject): Card {
  const event = stringOf(body['eventType']);
  const verb = event === 'Download' && body['isUpgrade'] === true ? 'Upgraded' : (VERB_BY_EVENT_TYPE[event] ?? event);
  const name = subjectOf(body);
  const [release, files] = [objectOf(body['release']), ['episodeFile', 'movieFile'].map((key) => objectOf(body[key]))];
  const fields: Field[] = [
    { name: 'Release', value: firstStringOf(release['releaseTitle']), isShort: false },
    {
      name: 'Quality',
      value: firstStringOf(release['quality'], ...files.map((file) => file['quality'])),
      isShort: true,
    },
    { name: 'Client', value: stringOf(body['downloadClient']), isShort: true },
    { name: 'Version', value: stringOf(body['newVersion']), isShort: true },
  ];
  return card({
    title: name === '' ? verb : `${verb}: ${name}`,
    url: stringOf(body['wikiUrl']),
    mood: moodOf(event, stringOf(body['level'])),
    text: stringOf(body['message']),
    fields: fields.filter(({ value }) => value !== ''),
  });
}

function moodOf(event: string, level: string): Mood | null {
  if (event === 'Health') return moodOfLevel(level) ?? 'warning';
  if (event === 'HealthRestored') return 'good';
  return event === 'ManualInteractionRequired' || event.endsWith('Failure') ? 'warning' : null;
}

/**
 * The title of what an event is about, such as `The Wire S01E02 The Detail`, `Heat (1995)` or `Nina Simone: Pastel
 * Blues`.
 */
function subjectOf(body: JsonObject): string {
  const [series, movie] = [objectOf(body['series']), objectOf(body['movie'])];
  const year = stringOf(movie['year']);
  const episodes = objectsOf(body['episodes'], MAX_LISTED_TITLES).map(episodeText);
  if (stringOf(series['title']) !== '') return [stringOf(series['title']), episodes.join(', ')].join(' ').trim();
  if (stringOf(movie['title']) !== '') return `${stringOf(movie['title'])}${year === '' ? '' : ` (${year})`}`;
  const creator = firstStringOf(objectOf(body['artist'])['name'], objectOf(body['author'])['name']);
  const works = ['albums', 'album', 'books', 'book'].flatMap((key) => objectsOf(body[key], MAX_LISTED_TITLES));
  const titles = works.map((work) => stringOf(work['title'])).filter((title) => title !== '');
  return [creator, titles.join(', ')].filter((part) => part !== '').join(': ');
}

function episodeText(episode: JsonObject): string {
  const [season, number] = [numberOf(episode['seasonNumber']), numberOf(episode['episodeNumber'])];
  const place = season === null || number === null ? '' : `S${twoDigits(season)}E${twoDigits(number)}`;
  return `${place} ${stringOf(episode['title'])}`.trim();
}

const twoDigits = (count: number): string => String(count).padStart(2, '0');

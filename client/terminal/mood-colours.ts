import { styleText } from 'node:util';

/** Paints a text in the colour of a mood; moods that are newer than this client have no colour. */
export type PaintMood = (mood: string, text: string) => string;

type Colour = 'green' | 'cyan' | 'yellow' | 'red';
const COLOUR_BY_MOOD: ReadonlyMap<string, Colour> = new Map<string, Colour>([
  ['good', 'green'],
  ['info', 'cyan'],
  ['warning', 'yellow'],
  ['danger', 'red'],
]);

/** Paints if the stream is a terminal with colours and `NO_COLOR` is not set; otherwise returns texts unchanged. */
export function moodPaint(stream: NodeJS.WritableStream): PaintMood {
  return (mood, text) => {
    const colour = COLOUR_BY_MOOD.get(mood);
    return colour === undefined ? text : styleText(colour, text, { stream });
  };
}

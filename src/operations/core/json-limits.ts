import { randomInt } from 'node:crypto';

/** Bounds of a JSON text. Each bounds something that takes time to parse. */
export interface JsonLimits {
  /** The most levels to which arrays and objects may be nested. V8 takes 200 ms for 500,000 levels. */
  readonly maxDepth: number;
  /** The most values, at any depth. */
  readonly maxValues: number;
  /**
   * The most shapes: the sequence of the first keys of an object, up to each of its keys, is a shape. Equal sequences
   * count once. V8 makes a hidden class for each shape: 25,000 shapes took 80 ms, while 25,000 objects of one shape
   * took 1 ms.
   */
  readonly maxShapes: number;
}

/**
 * More shapes than any limit allows. The hash table has twice as many slots, so that it is never more than half full.
 */
const MAX_SHAPES = 4_096;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const OPEN_OBJECT = 0x7b;
const DIGIT_0 = 0x30;
const DIGIT_9 = 0x39;

/**
 * Counts the different hashes of one JSON text. All texts share one hash table: `clear` begins a new generation, and
 * slots of older generations count as empty.
 */
class DistinctHashCounter {
  readonly #hashes = new Int32Array(2 * MAX_SHAPES);
  readonly #slotGenerations = new Uint32Array(2 * MAX_SHAPES);
  #textGeneration = 0;
  count = 0;

  clear(): void {
    this.#textGeneration += 1;
    this.count = 0;
  }

  add(hash: number): void {
    let slot = (hash >>> 1) & (this.#hashes.length - 1);
    while (this.#slotGenerations[slot] === this.#textGeneration) {
      if (this.#hashes[slot] === hash) return;
      slot = (slot + 1) & (this.#hashes.length - 1);
    }
    this.#hashes[slot] = hash;
    this.#slotGenerations[slot] = this.#textGeneration;
    this.count += 1;
  }
}

const shapesInText = new DistinctHashCounter();
/** Random, so that nobody can choose keys whose hashes are equal. */
const HASH_SEED = randomInt(0x7fffffff);

/**
 * Tells which limit a JSON text exceeds, as a sentence without a subject. Null: the text may be parsed. The check
 * passes over the text once: 1 MiB takes about 2 ms.
 */
export function jsonLimitViolation(text: string, limits: JsonLimits): string | null {
  // A text has at most as many levels, values and shapes as it has characters.
  if (text.length <= limits.maxDepth && text.length <= limits.maxValues && text.length <= limits.maxShapes) return null;
  const maxShapes = Math.min(limits.maxShapes, MAX_SHAPES - 1);
  /** For each depth: the hash of the keys so far in the object at this depth; 0 if it is an array. */
  const shapeHashByDepth = new Int32Array(limits.maxDepth + 2);
  let depth = 0;
  let valueCount = 0;
  let isKeyNext = false;
  shapesInText.clear();
  for (let at = 0; at < text.length; at += 1) {
    const unit = text.charCodeAt(at);
    if (unit === QUOTE) {
      const end = endOfString(text, at + 1);
      if (isKeyNext) {
        isKeyNext = false;
        const shape = extendShapeHash(text, at + 1, end, shapeHashByDepth[depth]!);
        // `shape` is 0 after a numeric key, which counts as no shape: V8 stores its value as an element, without a
        // hidden class.
        if (shape !== 0) {
          shapeHashByDepth[depth] = shape;
          shapesInText.add(shape);
          if (shapesInText.count > maxShapes) return `holds more than ${maxShapes} different keys`;
        }
      }
      at = end;
    } else if (unit === COMMA) {
      valueCount += 1;
      isKeyNext = shapeHashByDepth[depth] !== 0;
      if (valueCount > limits.maxValues) return `holds more than ${limits.maxValues} values`;
    } else if ((unit | 0x20) === OPEN_OBJECT) {
      // An object or an array: `| 0x20` turns the code of [ into that of {.
      depth += 1;
      valueCount += 1;
      if (depth > limits.maxDepth) return `is nested deeper than ${limits.maxDepth} levels`;
      if (valueCount > limits.maxValues) return `holds more than ${limits.maxValues} values`;
      isKeyNext = unit === OPEN_OBJECT;
      shapeHashByDepth[depth] = isKeyNext ? HASH_SEED | 1 : 0;
    } else if ((unit | 0x20) === 0x7d) {
      // Closes an object or array. A text that closes more than it opens is no JSON; V8 rejects it at once.
      depth = Math.max(0, depth - 1);
      isKeyNext = false;
    }
  }
  return null;
}

/** The position of the quote that closes a string; the length of the text if none does. */
function endOfString(text: string, begin: number): number {
  for (let at = begin; at < text.length; at += 1) {
    const unit = text.charCodeAt(at);
    if (unit === QUOTE) return at;
    if (unit === BACKSLASH) at += 1;
  }
  return text.length;
}

/** The hash of a shape with one more key, which is never 0; 0 if the key is numeric and shorter than ten digits. */
function extendShapeHash(text: string, begin: number, end: number, shape: number): number {
  let hash = shape;
  // A key with a leading zero, such as "07", does not count as numeric: V8 does not store its value as an element.
  let isNumber = end > begin && (end === begin + 1 || text.charCodeAt(begin) !== DIGIT_0);
  for (let at = begin; at < end; at += 1) {
    const unit = text.charCodeAt(at);
    isNumber &&= unit >= DIGIT_0 && unit <= DIGIT_9;
    hash = Math.imul(hash ^ unit, 0x5bd1e995);
    hash ^= hash >>> 15;
  }
  return isNumber && end - begin < 10 ? 0 : hash | 1;
}

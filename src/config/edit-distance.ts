/**
 * The least number of letters to insert, delete or replace to turn one word into the other (Levenshtein distance).
 * Meant for short words, such as names of keys.
 */
export function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const nextRow = [i];
    for (let j = 1; j <= b.length; j++) {
      const replaced = row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1);
      nextRow.push(Math.min(replaced, row[j]! + 1, nextRow[j - 1]! + 1));
    }
    row = nextRow;
  }
  return row[b.length]!;
}

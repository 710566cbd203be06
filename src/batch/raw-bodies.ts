import { elements, type JsonText, member } from './json-parts.ts'

/** For each item the text of its `body`, as it stands in the text of the batch; undefined for one without. */
export const rawBodies = (batch: JsonText): readonly (JsonText | undefined)[] => {
  const requests = member(batch.trim(), 'requests')
  const items = requests === undefined ? undefined : elements(requests)
  return (items ?? []).map((item) => member(item, 'body'))
}

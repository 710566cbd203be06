import { elements, type JsonText, members } from './json-parts.ts'

/** For each item the text of its `body`, as it stands in the text of the batch; undefined for one without. */
export const rawBodies = (batch: JsonText): readonly (JsonText | undefined)[] => {
  const requests = members(batch.trim()).get('requests')
  const items = requests === undefined ? undefined : elements(requests)
  return (items ?? []).map((item) => members(item).get('body'))
}

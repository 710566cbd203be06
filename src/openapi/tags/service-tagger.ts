import { isReadable } from '../../cache/readable-content.ts'
import { createTagNames, upstreamTags, type WriteResponse } from '../../cache/tagger.ts'
import type { Tagger } from '../../service/tagger.ts'

/** A refusal changes nothing; the outcome of any other failure is unknown. */
const changedNothing = (response: WriteResponse | undefined): boolean =>
  response !== undefined && response.status >= 400 && response.status < 500

/** Every write may change every response: a plant store has one list, and an OpenAPI document states no side effects. */
export const createServiceTagger = ({ service }: { readonly service: string }): Tagger => {
  const names = createTagNames(service)
  return {
    storedTags: (_found, _args, response) => [names.all, ...upstreamTags(names, response.fields)],
    callers: undefined,
    undeclared: undefined,
    isReadable,
    writtenTags: (_found, _args, _method, response, _shown, isReported = false) =>
      isReported || changedNothing(response) ? [] : [names.all],
    everything: names.all,
    changedTags: () => undefined,
  }
}

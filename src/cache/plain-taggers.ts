import { isReadable } from './readable-content.ts'
import { createTagNames, invalidatedGroups, type Tagger, upstreamTags, type WriteResponse } from './tagger.ts'

/** A refusal changes nothing; the outcome of any other failure is unknown. */
const changedNothing = (response: WriteResponse | undefined): boolean =>
  response !== undefined && response.status >= 400 && response.status < 500

/** Of services whose rows state no more about their responses. */
const undistinguished = { callers: undefined, undeclared: undefined, changedTags: () => undefined } as const

/** Every write may change every response: a plant store has one list, and an OpenAPI document states no side effects. */
export const createServiceTagger = ({ service }: { readonly service: string }): Tagger => {
  const names = createTagNames(service)
  return {
    ...undistinguished,
    storedTags: (_found, _args, response) => [names.all, ...upstreamTags(names, response.fields)],
    isReadable,
    writtenTags: (_found, _args, _method, response, _shown, isReported = false) =>
      isReported || changedNothing(response) ? [] : [names.all],
    everything: names.all,
  }
}

/** An open service has only the tags of its upstream; `unsafeTargets` invalidates its URLs. */
export const createOpenTagger = ({ service }: { readonly service: string }): Tagger => {
  const names = createTagNames(service)
  return {
    ...undistinguished,
    storedTags: (_found, _args, response) => upstreamTags(names, response.fields),
    isReadable: () => true,
    writtenTags: (_found, _args, _method, response) =>
      response === undefined ? [] : invalidatedGroups(names, response.fields),
    everything: undefined,
  }
}

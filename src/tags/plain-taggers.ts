import { isReadable } from './is-readable.ts'
import { createTagNames } from './tag-names.ts'
import type { Tagger, WriteResponse } from './tagger.ts'
import { invalidatedGroups, upstreamTags } from './upstream-tags.ts'

/** A refusal changes nothing; of an answer that is no success nobody knows. */
const changedNothing = (response: WriteResponse | undefined): boolean =>
  response !== undefined && response.status >= 400 && response.status < 500

/** A plant store has one list, and every write changes it. */
export const createPlantsTagger = ({ service }: { readonly service: string }): Tagger => {
  const names = createTagNames(service)
  return {
    storedTags: (_found, _args, response) => [
      names.all,
      ...upstreamTags(response.fields).map((name) => names.upstream(name)),
    ],
    callers: undefined,
    undeclared: undefined,
    isReadable,
    writtenTags: (_found, _args, _method, response) => (changedNothing(response) ? [] : [names.all]),
  }
}

/** Of an open service only what its upstream says is known: its own tags; targets are invalidated by `unsafeTargets`. */
export const createOpenTagger = ({ service }: { readonly service: string }): Tagger => {
  const names = createTagNames(service)
  return {
    storedTags: (_found, _args, response) =>
      upstreamTags(response.fields).map((name) => names.upstream(name)),
    callers: undefined,
    undeclared: undefined,
    isReadable: () => true,
    writtenTags: (_found, _args, _method, response) =>
      response === undefined ? [] : invalidatedGroups(response.fields).map((name) => names.upstream(name)),
  }
}

/*
 * Private: lockwright.h includes this file. It contains the usual course of three functions, so that the compiler can
 * put them and a known body in one place: lw_ics_update, lw_ics_read and lw_ics_write. For everything else they call
 * the functions of the same name in the library. So do all calls without optimisation, with -fno-inline or under
 * ThreadSanitizer, on other processors, and by a pointer.
 *
 * The usual course of lw_ics_update:
 *   - There is nothing to perform; or the last commit was that of this slot and wrote one word, which is performed.
 *   - The body returns 0, and no other section has committed meanwhile.
 * That of lw_ics_read and lw_ics_write: the section has not yet written the word.
 *
 * The algorithm is that of crates/ics, with the names of its functions in brackets. Each access that Rust makes to an
 * atomic is one here.
 */
#ifndef LOCKWRIGHT_INLINE_H
#define LOCKWRIGHT_INLINE_H

#ifdef __has_feature
#if __has_feature(thread_sanitizer)
#define LW_PRIVATE_THREAD_SANITIZER_
#endif
#endif

#if defined(__GNUC__) && defined(__x86_64__) && defined(__LP64__) && defined(__OPTIMIZE__) && !defined(__NO_INLINE__) \
    && !defined(__SANITIZE_THREAD__) && !defined(LW_PRIVATE_THREAD_SANITIZER_)

#define LW_PRIVATE_INLINE_ extern __inline__ __attribute__((gnu_inline, always_inline, artificial))

#ifdef __cplusplus
#define LW_PRIVATE_ASSERT_(holds) static_assert(holds, "the options of the compiler change the layout")
extern "C" {
#else
#define LW_PRIVATE_ASSERT_(holds) _Static_assert(holds, "the options of the compiler change the layout")
#endif

LW_PRIVATE_ASSERT_(sizeof(struct lw_ics_slot_t) == 16 && sizeof(struct lw_ics_section_t) == 80);
LW_PRIVATE_ASSERT_(sizeof(struct lw_private_ics_page_t) == 68 && sizeof(struct lw_private_ics_record_t) == 384);
LW_PRIVATE_ASSERT_(sizeof(struct lw_private_ics_object_t) == 9344 && sizeof(struct lw_private_ics_t) == 9472);

LW_PRIVATE_INLINE_ uint64_t lw_private_get_(const uint64_t *from)
{
    return __atomic_load_n(from, __ATOMIC_RELAXED);
}

LW_PRIVATE_INLINE_ void lw_private_set_(uint64_t *to, uint64_t value)
{
    __atomic_store_n(to, value, __ATOMIC_RELAXED);
}

LW_PRIVATE_INLINE_ uint32_t lw_private_get32_(const uint32_t *from)
{
    return __atomic_load_n(from, __ATOMIC_RELAXED);
}

LW_PRIVATE_INLINE_ void lw_private_set32_(uint32_t *to, uint32_t value)
{
    __atomic_store_n(to, value, __ATOMIC_RELAXED);
}

/* Changes a word from `before` to `next`, and returns whether it was changed [Commit::post, and the last step of
   Commit::perform]. */
LW_PRIVATE_INLINE_ int lw_private_ics_exchange_(uint64_t *word, uint64_t before, uint64_t next, uint32_t commit)
{
    unsigned char is_done;

    if (commit != LW_ICS_PLAIN)
        return __atomic_compare_exchange_n(word, &before, next, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
    /* In both syntaxes of the assembler: programs may be compiled with -masm=intel. */
    __asm__ volatile("cmpxchg{q %3, %1| %1, %3}\n\tsete %0"
                     : "=q"(is_done), "+m"(*word), "+a"(before)
                     : "r"(next)
                     : "cc", "memory");
    return is_done;
}

/* Returns whether what was read so far is from the instant at which the head was `seen` [Ics::validate]. */
LW_PRIVATE_INLINE_ int lw_private_ics_is_valid_(const struct lw_private_ics_object_t *object, uint64_t seen)
{
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return lw_private_get_(&object->lw_head) == seen;
}

/* Returns a place by its number [Ics::place]. */
LW_PRIVATE_INLINE_ uint64_t *lw_private_ics_place_(struct lw_private_ics_object_t *object, uint32_t number)
{
    if (number < LW_PRIVATE_ICS_PLACES_)
        return &object->lw_places[number];
    return &object->lw_words[(number - LW_PRIVATE_ICS_PLACES_) % LW_ICS_WORDS].lw_place;
}

/* Performs and settles the last commit, which is that of this slot and wrote one word [Writer::settle_own]. */
LW_PRIVATE_INLINE_ void lw_private_ics_settle_(struct lw_private_ics_object_t *object,
                                               struct lw_private_ics_record_t *record,
                                               struct lw_private_ics_page_t *page, uint64_t seen, uint32_t commit)
{
    uint32_t write = lw_private_get32_(&page->lw_writes[0]);
    uint64_t *locator = &object->lw_words[(write >> 16) % LW_ICS_WORDS].lw_locator;
    uint64_t target = (seen & ~(uint64_t)0xffff) | (write & 0xffff), before = lw_private_get_(locator);

    if (before != target && lw_private_ics_is_valid_(object, seen))
        lw_private_ics_exchange_(locator, before, target, commit);
    __atomic_store_n(&record->lw_performed, seen, __ATOMIC_RELEASE);
    lw_private_set_(&record->lw_last, seen);
    lw_private_set32_(&record->lw_spares[0], lw_private_get32_(&record->lw_replaced[0]));
    __atomic_store_n(&record->lw_pending, 0, __ATOMIC_RELEASE);
}

/* Begins an attempt [Writer::begin_at_once, Writer::begin_after_own]. Returns 0, and changes nothing, if the course is
   unusual. */
LW_PRIVATE_INLINE_ int lw_private_ics_begin_(struct lw_private_ics_t *ics, uint32_t slot,
                                             struct lw_ics_section_t *section)
{
    struct lw_private_ics_object_t *object = &ics->lw_object;
    struct lw_private_ics_record_t *record = &object->lw_records[slot];
    uint64_t seen = __atomic_load_n(&object->lw_head, __ATOMIC_ACQUIRE);
    uint64_t pending = lw_private_get_(&record->lw_pending), named = (seen & 0xffff) - 1, number;

    if (pending != 0) {
        struct lw_private_ics_page_t *page = &record->lw_pages[(pending - 1) % 2];

        if (pending != seen || ics->lw_commit == LW_ICS_RSEQ || lw_private_get32_(&page->lw_length) != 1)
            return 0;
        lw_private_ics_settle_(object, record, page, seen, ics->lw_commit);
    } else if (named < 2 * LW_ICS_SLOTS
               && __atomic_load_n(&object->lw_records[named / 2].lw_performed, __ATOMIC_ACQUIRE) != seen) {
        return 0;
    }
    lw_private_set_(&record->lw_entries, lw_private_get_(&record->lw_entries) + 1);
    __atomic_thread_fence(__ATOMIC_RELEASE);
    /* The page that was not posted last: pages are even and odd heads. */
    number = lw_private_get_(&record->lw_last) % 2;
    section->lw_kind = LW_PRIVATE_ICS_WRITES_;
    section->lw_refused = 0;
    section->lw_chosen = ics->lw_chosen;
    section->lw_attempt.lw_object = object;
    section->lw_attempt.lw_page = &record->lw_pages[number];
    section->lw_attempt.lw_record = record;
    section->lw_attempt.lw_slot = slot;
    section->lw_attempt.lw_seen = seen;
    section->lw_attempt.lw_page_number = number;
    section->lw_attempt.lw_length = 0;
    section->lw_attempt.lw_filter = 0;
    return 1;
}

/* Ends an attempt whose body returned 0 [Transaction::end]. Returns whether it has committed; otherwise the attempt has
   not ended. */
LW_PRIVATE_INLINE_ int lw_private_ics_commits_(const struct lw_private_ics_attempt_t *attempt, uint32_t commit)
{
    struct lw_private_ics_record_t *record = attempt->lw_record;
    uint64_t next = ((attempt->lw_seen & ~(uint64_t)0xffff) + 0x10000)
                    | (2 * attempt->lw_slot + attempt->lw_page_number + 1);

    if (attempt->lw_length == 0)
        return lw_private_ics_is_valid_(attempt->lw_object, attempt->lw_seen);
    if (commit == LW_ICS_RSEQ)
        return 0;
    lw_private_set32_(&attempt->lw_page->lw_length, (uint32_t)attempt->lw_length);
    __atomic_store_n(&record->lw_pending, next, __ATOMIC_RELEASE);
    if (!lw_private_ics_exchange_(&attempt->lw_object->lw_head, attempt->lw_seen, next, commit))
        return 0;
    lw_private_set_(&record->lw_commits, lw_private_get_(&record->lw_commits) + 1);
    return 1;
}

LW_PRIVATE_INLINE_ int lw_ics_update(struct lw_ics_slot_t *slot, lw_ics_body_t body, void *argument)
{
    struct lw_ics_section_t section;
    struct lw_private_ics_t *ics;
    int answer;

    if (!slot || (uintptr_t)slot % 8 != 0 || !body
        || slot->lw_check != (LW_PRIVATE_ICS_SLOT_ ^ (uint32_t)(uintptr_t)slot) || slot->lw_index >= LW_ICS_SLOTS)
        return lw_private_ics_update_(slot, body, argument);
    ics = slot->lw_object;
    if (__atomic_load_n(ics->lw_chosen, __ATOMIC_RELAXED) || !lw_private_ics_begin_(ics, slot->lw_index, &section))
        return lw_private_ics_update_(slot, body, argument);
    answer = body(&section, argument);
    if (answer == 0 && section.lw_refused == 0 && lw_private_ics_commits_(&section.lw_attempt, ics->lw_commit))
        return 0;
    return lw_private_ics_end_(&section, slot, body, argument, answer);
}

/* Returns whether the section writes, has not written this word, and is not to be cut [Transaction::may_have_written]. */
LW_PRIVATE_INLINE_ int lw_private_ics_is_usual_(const struct lw_ics_section_t *section, uint32_t word)
{
    return section && section->lw_kind == LW_PRIVATE_ICS_WRITES_
           && !__atomic_load_n(section->lw_chosen, __ATOMIC_RELAXED) && word < LW_ICS_WORDS
           && !(section->lw_attempt.lw_filter >> word & 1);
}

LW_PRIVATE_INLINE_ int lw_ics_read(struct lw_ics_section_t *section, uint32_t word, uint64_t *value)
{
    if (lw_private_ics_is_usual_(section, word) && value && (uintptr_t)value % 8 == 0) {
        struct lw_private_ics_object_t *object = section->lw_attempt.lw_object;
        struct lw_private_ics_word_t *of = &object->lw_words[word];
        /* 0 is the word's own place [Ics::read]. */
        uint32_t place = (uint32_t)lw_private_get_(&of->lw_locator) & 0xffff;
        uint64_t found = lw_private_get_(
            place == 0 ? &of->lw_place : lw_private_ics_place_(object, place ^ (LW_PRIVATE_ICS_PLACES_ + word)));

        if (lw_private_ics_is_valid_(object, section->lw_attempt.lw_seen)) {
            *value = found;
            return 0;
        }
    }
    return lw_private_ics_read_(section, word, value);
}

LW_PRIVATE_INLINE_ int lw_ics_write(struct lw_ics_section_t *section, uint32_t word, uint64_t value)
{
    if (lw_private_ics_is_usual_(section, word) && section->lw_attempt.lw_length < LW_ICS_WRITES) {
        struct lw_private_ics_attempt_t *attempt = &section->lw_attempt;
        struct lw_private_ics_record_t *record = attempt->lw_record;
        /* [Transaction::append] */
        uint32_t nth = (uint32_t)attempt->lw_length, home = LW_PRIVATE_ICS_PLACES_ + word;
        uint32_t made_with = (uint32_t)attempt->lw_slot * LW_ICS_WRITES + nth;
        uint32_t spare = lw_private_get32_(&record->lw_spares[nth]) ^ made_with;
        uint32_t replaced = ((uint32_t)lw_private_get_(&attempt->lw_object->lw_words[word].lw_locator) & 0xffff) ^ home;

        lw_private_set_(lw_private_ics_place_(attempt->lw_object, spare), value);
        lw_private_set32_(&record->lw_replaced[nth], replaced ^ made_with);
        lw_private_set32_(&attempt->lw_page->lw_writes[nth], word << 16 | (spare ^ home));
        attempt->lw_length = nth + 1;
        attempt->lw_filter |= (uint64_t)1 << word;
        return 0;
    }
    return lw_private_ics_write_(section, word, value);
}

#ifdef __cplusplus
}
#endif

#endif

#endif /* LOCKWRIGHT_INLINE_H */

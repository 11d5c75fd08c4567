using System;
using System.Collections.Generic;

namespace Stair
{
    /// <summary>A section that answers the question.</summary>
    public sealed class Hit
    {
        internal Hit(Native.Hit hit, IReadOnlyList<string> path)
        {
            Section = checked((int)hit.Section);
            Number = Utf8.Copy(hit.Number, hit.NumberLen) ?? "";
            Title = Utf8.Copy(hit.Title, hit.TitleLen) ?? "";
            Path = path;
            Page = Native.Optional(hit.Page);
            SpanStart = checked((long)hit.SpanStart);
            SpanEnd = checked((long)hit.SpanEnd);
            Text = Utf8.Copy(hit.Text, hit.TextLen);
            Score = hit.Score;
            LogProb = hit.LogProb;
            Lexical = hit.Lexical;
        }

        /// <summary>The section's id in the index.</summary>
        public int Section { get; }

        /// <summary>The number, for example <c>4.2</c>; empty where it has none.</summary>
        public string Number { get; }

        /// <summary>The title without the number.</summary>
        public string Title { get; }

        /// <summary>The numbers and titles from the top of the document down to this section.</summary>
        public IReadOnlyList<string> Path { get; }

        /// <summary>The page in the document; null where it has none.</summary>
        public long? Page { get; }

        /// <summary>Where the section begins in the document, in UTF-8 bytes.</summary>
        public long SpanStart { get; }

        /// <summary>Where it ends, in UTF-8 bytes.</summary>
        public long SpanEnd { get; }

        /// <summary>The text; null where the index does not keep it.</summary>
        public string Text { get; }

        /// <summary>
        /// What it is ranked by: <see cref="LogProb"/>, and <see cref="RetrieveOptions.LexicalWeight"/>
        /// times <see cref="Lexical"/> when that is above 0; <see cref="Lexical"/> without a model.
        /// </summary>
        public double Score { get; }

        /// <summary>
        /// The natural logarithm of the probability that the model gives this title; NaN without a
        /// model.
        /// </summary>
        public double LogProb { get; }

        /// <summary>
        /// Its lexical score for the question: BM25 of number, title and text, and of passages and
        /// known questions; 0 when they share no word. NaN with a model and a
        /// <see cref="RetrieveOptions.LexicalWeight"/> of 0.
        /// </summary>
        public double Lexical { get; }
    }

    /// <summary>What an answer cost.</summary>
    public sealed class RetrieveStats
    {
        internal RetrieveStats(Native.Stats stats)
        {
            Decodes = checked((int)stats.Decodes);
            QuestionTokens = checked((int)stats.QuestionTokens);
            SearchTokens = checked((int)stats.SearchTokens);
            PrefixTokens = checked((int)stats.PrefixTokens);
            RestoredTokens = checked((int)stats.RestoredTokens);
            Prefill = Milliseconds(stats.PrefillMs);
            Search = Milliseconds(stats.SearchMs);
            Total = Milliseconds(stats.TotalMs);
        }

        /// <summary>Decodes that the question had a part in.</summary>
        public int Decodes { get; }

        /// <summary>Tokens of the question, with the template's own around it.</summary>
        public int QuestionTokens { get; }

        /// <summary>Tokens that the search evaluated.</summary>
        public int SearchTokens { get; }

        /// <summary>
        /// Tokens of the table of contents that were decoded while this question waited; 0 on a
        /// warm retriever.
        /// </summary>
        public int PrefixTokens { get; }

        /// <summary>
        /// Tokens of the table of contents that were read from the warm file while this question
        /// waited, rather than decoded.
        /// </summary>
        public int RestoredTokens { get; }

        /// <summary>The time for the table of contents, decoded or read.</summary>
        public TimeSpan Prefill { get; }

        /// <summary>The time for the question and the search.</summary>
        public TimeSpan Search { get; }

        /// <summary>The time for the whole call, with waiting.</summary>
        public TimeSpan Total { get; }

        // TimeSpan.FromMilliseconds rounds to whole milliseconds on some runtimes.
        private static TimeSpan Milliseconds(double value)
        {
            return TimeSpan.FromTicks((long)(value * TimeSpan.TicksPerMillisecond));
        }
    }

    /// <summary>The answer to one question, independent of the retriever.</summary>
    public sealed class RetrieveResult
    {
        private RetrieveResult(IReadOnlyList<Hit> hits, Native.Stats stats)
        {
            Hits = hits;
            LegalMass = stats.LegalMass;
            Stats = new RetrieveStats(stats);
        }

        /// <summary>The sections, the best first.</summary>
        public IReadOnlyList<Hit> Hits { get; }

        /// <summary>
        /// How much of its probability the model gave to tokens that this document allows, along the
        /// best hit, 0 to 1. Low means that it wanted something that is not in this document. NaN
        /// without a model.
        /// </summary>
        public double LegalMass { get; }

        /// <summary>What the answer cost.</summary>
        public RetrieveStats Stats { get; }

        /// <summary>Copies native results.</summary>
        internal static RetrieveResult Copy(ResultsHandle results)
        {
            IntPtr error;
            var hits = new Hit[checked((int)(ulong)Native.stair_results_count(results))];
            for (int i = 0; i < hits.Length; i++)
            {
                var hit = new Native.Hit { StructSize = Native.SizeOf<Native.Hit>() };
                StairException.ThrowIfFailed(
                    Native.stair_results_get(results, (UIntPtr)(uint)i, ref hit, out error), error);
                hits[i] = new Hit(hit, CopyPath(results, i, hit.PathLen));
            }
            var stats = new Native.Stats { StructSize = Native.SizeOf<Native.Stats>() };
            StairException.ThrowIfFailed(Native.stair_results_stats(results, ref stats, out error), error);
            return new RetrieveResult(Array.AsReadOnly(hits), stats);
        }

        private static IReadOnlyList<string> CopyPath(ResultsHandle results, int hit, uint length)
        {
            var path = new string[checked((int)length)];
            for (int i = 0; i < path.Length; i++)
            {
                IntPtr text, error;
                UIntPtr bytes;
                StairException.ThrowIfFailed(
                    Native.stair_results_path(
                        results, (UIntPtr)(uint)hit, (UIntPtr)(uint)i, out text, out bytes, out error),
                    error);
                path[i] = Utf8.Copy(text, bytes);
            }
            return Array.AsReadOnly(path);
        }
    }
}

// The tests of the .NET binding: a console program, compiled together with the binding's sources.
//
// STAIR_TEST_HEADER   include/stair.h, to compare declarations and codes with
// STAIR_TEST_LAYOUT   what layout.c printed, to compare the structs with
// STAIR_TEST_MODEL    a GGUF model, and
// STAIR_TEST_INDEX    an index built for it: the tests that retrieve. They retrieve from a small
//                     document, because a model that was not trained for this searches long.
// STAIR_REQUIRE_MODEL 1: fail where the model or the index is not given
using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.IO;
using System.Linq;
using System.Reflection;
using System.Runtime.InteropServices;
using System.Text;
using System.Text.RegularExpressions;
using System.Threading;
using System.Threading.Tasks;
using Stair;

internal static class Tests
{
    private const string Question = "How long do I have to hand in a receipt?";

    private static int passed;
    private static int failed;

    private static int Main()
    {
        Console.WriteLine("stair " + StairLibrary.Version + " (" + StairLibrary.BuildInfo + ")");

        string header = Variable("STAIR_TEST_HEADER");
        string layout = Variable("STAIR_TEST_LAYOUT");
        Test("structs have the sizes of the C ABI, version 1", StructSizes);
        TestIf(layout, "structs have the layout that the C compiler gives them", () => StructLayouts(layout));
        TestIf(header, "functions are those of the header", () => HeaderFunctions(header));
        TestIf(header, "error codes are those of the header", () => HeaderCodes(header));
        Test("error codes have the names that the library gives them", CodeNames);
        Test("missing and unsuitable files", Files);
        Test("bytes that are no index", Buffers);
        Test("null arguments", Nulls);
        Test("text with an unpaired surrogate", Surrogates);
        Test("options out of range", OptionRanges);
        Test("a held handle is released once, after its Dispose", HeldHandle);
        Test("a cancelled token opens no model", OpenCancelled);
        Test("logging can be set and unset", Logging);

        string model = Variable("STAIR_TEST_MODEL"), index = Variable("STAIR_TEST_INDEX");
        if (model != null && index != null)
        {
            using (var tests = new RetrieveTests(model, index))
            {
                tests.Run();
            }
        }
        else if (Variable("STAIR_REQUIRE_MODEL") == "1")
        {
            Test("STAIR_TEST_MODEL and STAIR_TEST_INDEX are set", () => Check(false, "they are not"));
        }
        else
        {
            Console.WriteLine("skipped the tests that retrieve: no STAIR_TEST_MODEL and STAIR_TEST_INDEX");
        }

        Console.WriteLine(passed + " passed, " + failed + " failed");
        return failed == 0 ? 0 : 1;
    }

    // The library without a model.

    private static void StructSizes()
    {
        Check(IntPtr.Size == 8, "the sizes are those of a 64-bit process");
        Same(24, Marshal.SizeOf<Native.ModelOptions>(), "stair_model_options");
        Same(56, Marshal.SizeOf<Native.ModelInfo>(), "stair_model_info");
        Same(72, Marshal.SizeOf<Native.IndexInfo>(), "stair_index_info");
        Same(88, Marshal.SizeOf<Native.Section>(), "stair_section");
        Same(48, Marshal.SizeOf<Native.BuildOptions>(), "stair_build_options");
        Same(48, Marshal.SizeOf<Native.RetrieverOptions>(), "stair_retriever_options");
        Same(20, Marshal.SizeOf<Native.RetrieveOptions>(), "stair_retrieve_options");
        Same(104, Marshal.SizeOf<Native.Hit>(), "stair_hit");
        Same(56, Marshal.SizeOf<Native.Stats>(), "stair_stats");
    }

    private static void StructLayouts(string path)
    {
        var ours = new List<string>();
        foreach (var type in typeof(Native).GetNestedTypes(BindingFlags.NonPublic).Where(type => type.IsValueType))
        {
            string name = "stair_" + SnakeCase(type.Name);
            ours.Add(name + " " + Marshal.SizeOf(type));
            ours.AddRange(
                type.GetFields(BindingFlags.NonPublic | BindingFlags.Instance)
                    .Select(field => name + "." + SnakeCase(field.Name) + " " + Marshal.OffsetOf(type, field.Name)));
        }
        SameSets(File.ReadAllLines(path), ours);
    }

    private static void HeaderFunctions(string path)
    {
        var declared = Regex.Matches(WithoutComments(path), @"\b(stair_[a-z_]+)\s*\(").Cast<Match>()
            .Select(match => match.Groups[1].Value);
        var imported = typeof(Native).GetMethods(BindingFlags.NonPublic | BindingFlags.Static)
            .Where(method => (method.Attributes & MethodAttributes.PinvokeImpl) != 0)
            .Select(method => method.Name);
        SameSets(declared, imported);
    }

    private static void HeaderCodes(string path)
    {
        var codes = Regex.Matches(WithoutComments(path), @"\bSTAIR_ERR_([A-Z0-9_]+)\s*=?\s*([0-9]+)").Cast<Match>()
            .Select(match => match.Groups[1].Value + " " + match.Groups[2].Value);
        SameSets(codes, Codes().Select(code => SnakeCase(code.ToString()).ToUpperInvariant() + " " + (int)code));
    }

    private static void CodeNames()
    {
        foreach (var code in Codes())
        {
            var error = new StairException(code, "message");
            Same(SnakeCase(code.ToString()).ToUpperInvariant(), error.Name, "name of " + (int)code);
            Same(code, error.Code, "code");
            Same("message", error.Message, "message");
        }
        Same("UNKNOWN", new StairException((StairErrorCode)12345, "").Name, "name of no code");
    }

    private static void Files()
    {
        string folder = Path.GetTempPath();
        string missing = Path.Combine(folder, "stair-\u00e4\u4f60\U0001f389-missing");
        var error = Throws(StairErrorCode.NotFound, () => StairModel.Open(missing));
        Check(error.Message.Contains(missing), "the message names the file: " + error.Message);
        Throws(StairErrorCode.NotFound, () => StairIndex.Open(missing));
        Throws(StairErrorCode.NotFound, () => StairIndex.Open(missing, true));
        Throws(StairErrorCode.NotFound, () => StairIndex.Peek(missing));
        Throws(StairErrorCode.NotAFile, () => StairModel.Open(folder));
        Throws(StairErrorCode.NotAFile, () => StairIndex.Open(folder));

        string garbage = Path.GetTempFileName();
        try
        {
            File.WriteAllText(garbage, string.Concat(Enumerable.Repeat("not what you look for. ", 100)));
            Throws(StairErrorCode.NotAModel, () => StairModel.Open(garbage));
            Throws(StairErrorCode.NotAnIndex, () => StairIndex.Open(garbage));
            Throws(StairErrorCode.NotAnIndex, () => StairIndex.Peek(garbage));
        }
        finally
        {
            File.Delete(garbage);
        }
    }

    private static void Buffers()
    {
        Throws(StairErrorCode.NotAnIndex, () => StairIndex.Open(new byte[0]));
        Throws(StairErrorCode.NotAnIndex, () => StairIndex.Open(new byte[1000]));
    }

    private static void Nulls()
    {
        Throws<ArgumentNullException>(() => StairModel.Open(null));
        Throws<ArgumentNullException>(() => StairIndex.Open((string)null));
        Throws<ArgumentNullException>(() => StairIndex.Open((byte[])null));
        Throws<ArgumentNullException>(() => StairIndex.Peek(null));
        Throws<ArgumentNullException>(() => StairIndex.Build(null, "# A"));
        Throws<ArgumentNullException>(() => new StairRetriever(null, null));
        Throws<ArgumentNullException>(() => StairRetriever.Lexical(null));
    }

    private static void Surrogates()
    {
        Throws(StairErrorCode.InvalidUtf8, () => StairModel.Open("a\ud800b"));
    }

    private static void OptionRanges()
    {
        var options = new RetrieveOptions();
        Throws<ArgumentOutOfRangeException>(() => options.Timeout = TimeSpan.Zero);
        Throws<ArgumentOutOfRangeException>(() => options.Timeout = TimeSpan.FromDays(50));
        options.Timeout = TimeSpan.FromTicks(1);
        Same(1u, options.ToNative().TimeoutMs, "a timeout is never rounded to none");
        options.Timeout = null;
        Same(0u, options.ToNative().TimeoutMs, "no timeout");
        Same(0x80000000u, options.ToNative().K, "default k");
        Same(0f, options.ToNative().LexicalWeight, "default weight");
        options.K = -1;
        Throws<ArgumentOutOfRangeException>(() => options.ToNative());
        Throws<ArgumentOutOfRangeException>(() => new RetrieverOptions { Threads = -1 }.ToNative());
        Same(-1, new ModelOptions { GpuLayers = -1 }.ToNative().GpuLayers, "no layers on the GPU");
    }

    private static void HeldHandle()
    {
        var cancel = CancelHandle.Create();
        var first = cancel.Hold("owner");
        var second = cancel.Hold("owner");
        cancel.Dispose();
        Throws<ObjectDisposedException>(() => cancel.Hold("owner"));
        first();
        first();
        Check(!cancel.IsClosed, "the second holds it");
        Same(0, Native.stair_cancel_triggered(cancel), "a call goes on with it");
        second();
        Check(cancel.IsClosed, "nobody holds it");
    }

    private static void OpenCancelled()
    {
        Throws<OperationCanceledException>(() => StairModel.Open("x", null, new CancellationToken(true)));
    }

    private static void Logging()
    {
        StairLibrary.SetLog((level, message) => { throw new InvalidOperationException(message); }, StairLogLevel.Debug);
        Throws(StairErrorCode.NotFound, () => StairModel.Open("/nowhere/at/all"));
        StairLibrary.SetLog(null);
    }

    /// <summary>The tests that share one model, two indexes and a retriever on the small one.</summary>
    private sealed class RetrieveTests : IDisposable
    {
        private const string Document =
            "# F\u00fchrer \U0001f4d8\n\n"
            + "## 1 Travel\n\n### 1.1 Claims and receipts\n\nWithin 30 days.\n\n### 1.2 Mileage\n\nBy car.\n\n"
            + "## 2 Leave\n\nFive weeks.\n\n"
            + "## 3 \u68a8 \U0001f350\n\n\u751c\u3044\u3002\n";

        private readonly string modelPath;
        private readonly string indexPath;
        private readonly StairModel model;
        private readonly StairIndex file;
        private readonly StairIndex index;
        private readonly StairRetriever retriever;

        internal RetrieveTests(string modelPath, string indexPath)
        {
            this.modelPath = modelPath;
            this.indexPath = indexPath;
            model = StairModel.Open(modelPath);
            file = StairIndex.Open(indexPath);
            index = StairIndex.Build(model, Document);
            retriever = NewRetriever();
        }

        public void Dispose()
        {
            retriever.Dispose();
            index.Dispose();
            file.Dispose();
            model.Dispose();
        }

        internal void Run()
        {
            Test("what a model says of itself", ModelInfo);
            Test("opening a model logs, until told to stop", Log);
            Test("an index from memory is the index from the file", IndexFromMemory);
            Test("the sections of an index", Sections);
            Test("an index built from a string, saved and opened", Build);
            Test("documents that cannot be indexed", BuildErrors);
            Test("an answer is complete and consistent with the index", Answer);
            Test("words beside what the model says", LexicalWeight);
            Test("the warm file", WarmFile);
            Test("words without a model", Lexical);
            Test("a section is found by a known question", KnownQuestions);
            Test("questions in any script", Scripts);
            Test("questions that are not usable", BadQuestions);
            Test("the numbers of hits that are and are not usable", K);
            Test("a deadline", Deadline);
            Test("cancellation before", CancelBefore);
            Test("cancellation during", CancelDuring);
            Test("cancellation after is harmless", CancelAfter);
            Test("eight tasks get the same answers", Concurrent);
            Test("disposed objects", Disposed);
            Test("disposing in any order", DisposeOrder);
            Test("disposing while retrieving", DisposeWhileRetrieving);
            Test("answers with the garbage collector at work", Collect);
        }

        private void ModelInfo()
        {
            var info = model.Info;
            Check(info.Architecture.Length > 0, "architecture");
            Check(info.VocabularySize > 0 && info.ContextLength > 0 && info.Parameters > 0 && info.Bytes > 0, "counts");
            Same(file.Info.Fingerprint, info.Fingerprint, "fingerprint");
            Same(file.Info.VocabularySize, info.VocabularySize, "vocabulary");
        }

        private void Log()
        {
            int messages = 0;
            StairLibrary.SetLog((level, message) => Interlocked.Increment(ref messages), StairLogLevel.Debug);
            StairModel.Open(modelPath, new ModelOptions { VocabularyOnly = true }).Dispose();
            StairLibrary.SetLog(null);
            int before = Volatile.Read(ref messages);
            StairModel.Open(modelPath, new ModelOptions { VocabularyOnly = true }).Dispose();
            Check(before > 0, "there is a message");
            Same(before, Volatile.Read(ref messages), "messages after the log was unset");
        }

        private void IndexFromMemory()
        {
            var peeked = StairIndex.Peek(indexPath);
            Check(peeked.Title == null, "no title from peek");
            Check(file.Info.Title != null, "a title");
            using (var buffer = StairIndex.Open(File.ReadAllBytes(indexPath)))
            using (var copy = StairIndex.Open(indexPath, true))
            {
                foreach (var info in new[] { peeked, buffer.Info, copy.Info })
                {
                    Same(file.Info.Sections, info.Sections, "sections");
                    Same(file.Info.Leaves, info.Leaves, "leaves");
                    Same(file.Info.Fingerprint, info.Fingerprint, "fingerprint");
                    Same(file.Info.FormatVersion, info.FormatVersion, "format version");
                }
                Same(file.Info.Title, buffer.Info.Title, "title");
                int last = file.Info.Sections - 1;
                Same(file.GetSection(last).Title, buffer.GetSection(last).Title, "a title");
                Same(file.GetSection(last).Text, copy.GetSection(last).Text, "a text");
            }
        }

        private void Sections()
        {
            int leaves = 0;
            for (int id = 0; id < file.Info.Sections; id++)
            {
                var section = file.GetSection(id);
                Same(id, section.Id, "id");
                Check(section.Parent == null || section.Parent < id, "parents come first");
                Check(section.SpanStart <= section.SpanEnd, "span");
                Same(file.Info.HasText, section.Text != null, "text");
                leaves += section.IsLeaf ? 1 : 0;
            }
            Same(file.Info.Leaves, leaves, "leaves");
            Throws(StairErrorCode.InvalidArgument, () => file.GetSection(file.Info.Sections));
            Throws<ArgumentOutOfRangeException>(() => file.GetSection(-1));
        }

        private void Build()
        {
            Same("F\u00fchrer \U0001f4d8", index.Info.Title, "title");
            Same(5, index.Info.Sections, "sections");
            Same(4, index.Info.Leaves, "leaves");
            string path = Path.Combine(Path.GetTempPath(), "stair-\u00e4-" + Guid.NewGuid().ToString("N") + ".stair");
            try
            {
                index.Save(path);
                using (var opened = StairIndex.Open(path))
                {
                    var pear = opened.GetSection(4);
                    Same("3", pear.Number, "number");
                    Same("\u68a8 \U0001f350", pear.Title, "title");
                    Check(pear.Text.Contains("\u751c\u3044\u3002"), "text: " + pear.Text);
                    Same(0, opened.GetSection(1).Parent, "parent");
                    Same(null, pear.Page, "page");
                }
            }
            finally
            {
                File.Delete(path);
            }
            Throws(StairErrorCode.NotFound, () => index.Save(Path.Combine(path + "-nowhere", "x.stair")));
            var options = new BuildOptions { Format = DocumentFormat.Markdown, OmitText = true };
            using (var other = StairIndex.Build(model, "# A\n\n## B\n\n## C\n", "Anders", options))
            using (var asked = new StairRetriever(model, other))
            {
                Same("Anders", other.Info.Title, "title");
                Same(false, other.Info.HasText, "has text");
                Same(null, other.GetSection(0).Text, "text");
                // Three hits are the default, but this document has two leaves.
                Same(2, asked.Retrieve(Question).Hits.Count, "hits");
            }
            const string Pages = "{\"title\": \"A\", \"sections\": ["
                + "{\"level\": 1, \"title\": \"B\", \"page\": 4294967294}, {\"level\": 1, \"title\": \"C\", \"page\": 0}]}";
            using (var paged = StairIndex.Build(model, Pages, null, new BuildOptions { Format = DocumentFormat.TableOfContentsJson }))
            using (var words = StairRetriever.Lexical(paged))
            {
                Same(4294967294L, paged.GetSection(0).Page, "the last page");
                Same(0L, paged.GetSection(1).Page, "the first page");
                Same(4294967294L, words.Retrieve("B?", new RetrieveOptions { K = 1 }).Hits[0].Page, "the hit's page");
            }
        }

        private void BuildErrors()
        {
            Throws(StairErrorCode.NoHeadings, () => StairIndex.Build(model, "No headings."));
            Throws(StairErrorCode.NoHeadings, () => StairIndex.Build(model, ""));
            Throws<ArgumentNullException>(() => StairIndex.Build(model, null));
            Throws(
                StairErrorCode.InvalidArgument,
                () => StairIndex.Build(model, "# A\n\n## B\n", null, new BuildOptions { Format = (DocumentFormat)99 }));
        }

        private void Answer()
        {
            retriever.Warm();
            var answer = retriever.Retrieve(Question);
            Same(3, answer.Hits.Count, "hits");
            double before = 0;
            foreach (var hit in answer.Hits)
            {
                var section = index.GetSection(hit.Section);
                Check(section.IsLeaf, "a leaf");
                Same(section.Number, hit.Number, "number");
                Same(section.Title, hit.Title, "title");
                Same(section.Text, hit.Text, "text");
                Same(section.Page, hit.Page, "page");
                Same(section.SpanStart, hit.SpanStart, "start");
                Same(section.SpanEnd, hit.SpanEnd, "end");
                Same(section.Depth, index.GetSection(0).Depth + hit.Path.Count - 1, "depth");
                Check(hit.Path[hit.Path.Count - 1].EndsWith(hit.Title, StringComparison.Ordinal), "path ends in the title");
                Check(hit.LogProb <= before, "best first, none positive: " + hit.LogProb);
                before = hit.LogProb;
                Check(hit.Score == hit.LogProb && double.IsNaN(hit.Lexical), "no weight");
            }
            Check(answer.LegalMass >= 0 && answer.LegalMass <= 1.000001, "legal mass " + answer.LegalMass);
            Check(answer.Stats.Decodes > 0 && answer.Stats.QuestionTokens > 0 && answer.Stats.SearchTokens > 0, "counts");
            Check(answer.Stats.Total > TimeSpan.Zero && answer.Stats.Total < TimeSpan.FromMinutes(10), "time");
            Same(0, answer.Stats.PrefixTokens, "prefix tokens when warm");
            retriever.Retrieve(Question, new RetrieveOptions { K = 1, Scoring = Scoring.Local });
        }

        private void WarmFile()
        {
            string folder = System.IO.Path.Combine(
                System.IO.Path.GetTempPath(), "stair-w\u00e4rme-" + Guid.NewGuid().ToString("N"));
            try
            {
                var options = new RetrieverOptions { Deterministic = true, CacheDir = folder };
                var answers = new List<RetrieveResult>();
                for (int i = 0; i < 2; i++)
                {
                    using (var one = new StairRetriever(model, index, options))
                    {
                        answers.Add(one.Retrieve(Question));
                    }
                }
                var cold = answers[0].Stats;
                var warm = answers[1].Stats;
                Check(cold.PrefixTokens > 0 && cold.RestoredTokens == 0, "decoded first");
                Check(warm.PrefixTokens == 0 && warm.RestoredTokens == cold.PrefixTokens, "restored then");
                for (int i = 0; i < answers[0].Hits.Count; i++)
                {
                    Same(answers[0].Hits[i].Section, answers[1].Hits[i].Section, "section");
                    Same(answers[0].Hits[i].LogProb, answers[1].Hits[i].LogProb, "to the bit");
                }
                options.CacheDir = "a\0b";
                Throws(StairErrorCode.InvalidArgument, () => new StairRetriever(model, index, options).Dispose());
            }
            finally
            {
                if (System.IO.Directory.Exists(folder))
                {
                    System.IO.Directory.Delete(folder, true);
                }
            }
        }

        private void LexicalWeight()
        {
            var options = new RetrieveOptions { K = 4, LexicalWeight = 0.5f };
            double before = double.PositiveInfinity;
            foreach (var hit in retriever.Retrieve("Which receipts for claims?", options).Hits)
            {
                Check(Math.Abs(hit.Score - (hit.LogProb + (0.5 * hit.Lexical))) < 1e-5, "score " + hit.Score);
                Check(hit.Score <= before, "best first: " + hit.Score);
                Same(hit.Title == "Claims and receipts", hit.Lexical > 0, "words of " + hit.Title);
                before = hit.Score;
            }
            foreach (var weight in new[] { -1, float.NaN, float.PositiveInfinity })
            {
                options.LexicalWeight = weight;
                Throws(StairErrorCode.InvalidArgument, () => retriever.Retrieve(Question, options));
            }
        }

        private void Lexical()
        {
            using (var words = StairRetriever.Lexical(index))
            {
                words.Warm();
                var answer = words.Retrieve("Claim a receipt \u68a8");
                Same(3, answer.Hits.Count, "hits");
                Same("Claims and receipts", answer.Hits[0].Title, "the best");
                Check(answer.Hits[1].Title.StartsWith("\u68a8", StringComparison.Ordinal), "the second");
                Check(answer.Hits[0].Score > answer.Hits[1].Score && answer.Hits[1].Score > 0, "scores");
                foreach (var hit in answer.Hits)
                {
                    Check(hit.Score == hit.Lexical && double.IsNaN(hit.LogProb), "words alone");
                }
                Same(0.0, answer.Hits[2].Score, "a section without the words");
                Check(double.IsNaN(answer.LegalMass) && answer.Stats.Decodes == 0, "no model");
                Throws(StairErrorCode.EmptyQuestion, () => words.Retrieve(" "));
                Throws(StairErrorCode.InvalidK, () => words.Retrieve(Question, new RetrieveOptions { K = 5 }));
                Throws<OperationCanceledException>(() => words.Retrieve(Question, null, new CancellationToken(true)));
            }
        }

        private void KnownQuestions()
        {
            const string document = "# A\n\n## B\n\nb\n\n## C\n\nc\n";
            var options = new BuildOptions
            {
                Questions = "{\"id\": 1, \"query\": \"Where is the z\u00e8bre?\", \"section\": \"2 C\", \"split\": \"train\"}\n" +
                    "{\"id\": 2, \"query\": \"Z\u00e8bre?\", \"section\": \"1 B\", \"split\": \"test\"}\n",
            };
            foreach (var given in new[] { null, options })
            {
                using (var known = StairIndex.Build(model, document, null, given))
                using (var words = StairRetriever.Lexical(known))
                {
                    var best = words.Retrieve("Z\u00e8bre?").Hits[0];
                    Same(given == null ? "B" : "C", best.Title, "the best");
                    Same(given != null, best.Score > 0, "a score");
                }
            }
            options.Split = "dev";
            Throws(StairErrorCode.InvalidArgument, () => StairIndex.Build(model, document, null, options));
            options.Split = "train";
            options.Questions = options.Questions.Replace("2 C", "2 D");
            Throws(StairErrorCode.Questions, () => StairIndex.Build(model, document, null, options));
            options.Questions = "";
            Throws(StairErrorCode.Questions, () => StairIndex.Build(model, document, null, options));
        }

        private void Scripts()
        {
            var questions = new[]
            {
                "\u0643\u0645 \u0645\u0646 \u0627\u0644\u0648\u0642\u062a \u0644\u062f\u064a\u061f",
                "\u6536\u636e\u8981\u5728\u591a\u5c11\u5929\u5185\u4ea4\uff1f",
                "\U0001f9fe\u23f0\U0001f469\u200d\U0001f4bb?",
                "Wie lange habe ich f\u00fcr die \u00dcbergabe?",
            };
            foreach (var question in questions)
            {
                Same(2, retriever.Retrieve(question, new RetrieveOptions { K = 2 }).Hits.Count, "hits");
#if NETCOREAPP
                SameAnswers(
                    retriever.Retrieve(question), retriever.Retrieve(new ReadOnlySpan<byte>(Encoding.UTF8.GetBytes(question))));
#endif
            }
        }

        private void BadQuestions()
        {
            Throws<ArgumentNullException>(() => retriever.Retrieve((string)null));
            Throws<ArgumentNullException>(() => retriever.RetrieveAsync(null).GetAwaiter().GetResult());
            Throws(StairErrorCode.EmptyQuestion, () => retriever.Retrieve(""));
            Throws(StairErrorCode.EmptyQuestion, () => retriever.Retrieve("   "));
            Throws(StairErrorCode.NulInQuestion, () => retriever.Retrieve("a\0b"));
            Throws(StairErrorCode.InvalidUtf8, () => retriever.Retrieve("a\udfffb"));
            Throws(StairErrorCode.QuestionTooLong, () => retriever.Retrieve(string.Concat(Enumerable.Repeat("why ", 5000))));
            Throws(StairErrorCode.EmptyQuestion, () => retriever.RetrieveAsync("").GetAwaiter().GetResult());
#if NETCOREAPP
            Throws(StairErrorCode.EmptyQuestion, () => retriever.Retrieve(ReadOnlySpan<byte>.Empty));
            Throws(StairErrorCode.InvalidUtf8, () => retriever.Retrieve(new ReadOnlySpan<byte>(new byte[] { 0x61, 0xff })));
#endif
        }

        private void K()
        {
            Throws(StairErrorCode.InvalidK, () => retriever.Retrieve(Question, new RetrieveOptions { K = 0 }));
            Throws(
                StairErrorCode.InvalidK,
                () => retriever.Retrieve(Question, new RetrieveOptions { K = index.Info.Leaves + 1 }));
            Throws(StairErrorCode.InvalidK, () => retriever.Retrieve(Question, new RetrieveOptions { K = int.MaxValue }));
            Throws<ArgumentOutOfRangeException>(() => retriever.Retrieve(Question, new RetrieveOptions { K = -1 }));
            Throws(
                StairErrorCode.InvalidArgument,
                () => retriever.Retrieve(Question, new RetrieveOptions { Scoring = (Scoring)99 }));
            var all = retriever.Retrieve(Question, new RetrieveOptions { K = index.Info.Leaves });
            Same(index.Info.Leaves, all.Hits.Select(hit => hit.Section).Distinct().Count(), "different hits");
        }

        private void Deadline()
        {
            var options = new RetrieveOptions { K = index.Info.Leaves, Timeout = TimeSpan.FromMilliseconds(1) };
            Throws(StairErrorCode.Timeout, () => retriever.Retrieve(Question, options));
            options.Timeout = TimeSpan.FromMinutes(10);
            options.K = 1;
            Same(1, retriever.Retrieve(Question, options).Hits.Count, "hits");
        }

        private void CancelBefore()
        {
            var cancelled = new CancellationToken(true);
            Throws<OperationCanceledException>(() => retriever.Retrieve(Question, null, cancelled));
            Throws<OperationCanceledException>(() => retriever.Warm(cancelled));
            var task = retriever.RetrieveAsync(Question, null, cancelled);
            Throws<OperationCanceledException>(() => task.GetAwaiter().GetResult());
            Check(task.IsCanceled, "the task is cancelled");
        }

        private void CancelDuring()
        {
            // A new retriever has the table of contents to read first, so there is time.
            using (var cold = NewRetriever())
            using (var source = new CancellationTokenSource())
            {
                var task = cold.RetrieveAsync(Question, new RetrieveOptions { K = index.Info.Leaves }, source.Token);
                Thread.Sleep(20);
                source.Cancel();
                var error = Throws<OperationCanceledException>(() => task.GetAwaiter().GetResult());
                Check(task.IsCanceled, "the task is cancelled");
                Same(source.Token, error.CancellationToken, "token");
            }
            using (var cold = NewRetriever())
            using (var source = new CancellationTokenSource(20))
            {
                Throws<OperationCanceledException>(
                    () => cold.Retrieve(Question, new RetrieveOptions { K = index.Info.Leaves }, source.Token));
                Same(1, cold.Retrieve(Question, new RetrieveOptions { K = 1 }).Hits.Count, "hits afterwards");
            }
        }

        private void CancelAfter()
        {
            using (var source = new CancellationTokenSource())
            {
                var options = new RetrieveOptions { K = 1 };
                Same(1, retriever.Retrieve(Question, options, source.Token).Hits.Count, "hits");
                source.Cancel();
            }
            // Tokens that are cancelled at about the time of the return.
            var time = Stopwatch.StartNew();
            retriever.Retrieve(Question, new RetrieveOptions { K = 1 });
            int once = (int)time.ElapsedMilliseconds;
            for (int i = -2; i <= 2; i++)
            {
                using (var source = new CancellationTokenSource(Math.Max(0, once + i * Math.Max(1, once / 20))))
                {
                    try
                    {
                        retriever.Retrieve(Question, new RetrieveOptions { K = 1 }, source.Token);
                    }
                    catch (OperationCanceledException)
                    {
                    }
                }
            }
        }

        private void Concurrent()
        {
            var questions = new[] { Question, "Who approves remote work?", "\u4f60\u597d" };
            var options = new RetrieveOptions { K = 2 };
            var alone = questions.Select(question => retriever.Retrieve(question, options)).ToArray();
            var together = Task.WhenAll(
                Enumerable.Range(0, 8)
                    .Select(i => retriever.RetrieveAsync(questions[i % questions.Length], options)))
                .GetAwaiter().GetResult();
            for (int i = 0; i < together.Length; i++)
            {
                SameAnswers(alone[i % alone.Length], together[i]);
            }
        }

        private void Disposed()
        {
            var closedModel = StairModel.Open(modelPath, new ModelOptions { VocabularyOnly = true });
            closedModel.Dispose();
            closedModel.Dispose();
            Check(closedModel.Info.VocabularySize > 0, "the information stays");
            var closedIndex = StairIndex.Open(indexPath);
            closedIndex.Dispose();
            closedIndex.Dispose();
            var closed = NewRetriever();
            closed.Dispose();
            closed.Dispose();
            Throws<ObjectDisposedException>(() => StairIndex.Build(closedModel, "# A\n\n## B\n"));
            Throws<ObjectDisposedException>(() => closedIndex.Save("x"));
            Throws<ObjectDisposedException>(() => closedIndex.GetSection(0));
            Throws<ObjectDisposedException>(() => new StairRetriever(closedModel, index));
            Throws<ObjectDisposedException>(() => new StairRetriever(model, closedIndex));
            Throws<ObjectDisposedException>(() => closed.Warm());
            Throws<ObjectDisposedException>(() => closed.Retrieve(Question));
            Throws<ObjectDisposedException>(() => closed.RetrieveAsync(Question).GetAwaiter().GetResult());
        }

        private void DisposeOrder()
        {
            var ownModel = StairModel.Open(modelPath);
            var ownIndex = StairIndex.Build(ownModel, Document);
            using (var orphan = new StairRetriever(ownModel, ownIndex))
            {
                ownModel.Dispose();
                ownIndex.Dispose();
                var answer = orphan.Retrieve(Question, new RetrieveOptions { K = 1 });
                orphan.Dispose();
                Check(answer.Hits[0].Title.Length > 0, "an answer outlives its retriever");
            }
        }

        private void DisposeWhileRetrieving()
        {
            foreach (int wait in new[] { 0, 50 })
            {
                var busy = NewRetriever();
                var tasks = Enumerable.Range(0, 3)
                    .Select(_ => busy.RetrieveAsync(Question, new RetrieveOptions { K = 1 }))
                    .ToArray();
                Thread.Sleep(wait);
                busy.Dispose();
                Throws<ObjectDisposedException>(() => busy.Retrieve(Question));
                foreach (var task in tasks)
                {
                    Same(1, task.GetAwaiter().GetResult().Hits.Count, "hits");
                }
            }
        }

        private void Collect()
        {
            var options = new RetrieveOptions { K = 2 };
            var expected = retriever.Retrieve(Question, options);
            bool done = false;
            var collector = new Thread(() =>
            {
                while (!Volatile.Read(ref done))
                {
                    GC.Collect();
                    GC.WaitForPendingFinalizers();
                    Thread.Sleep(1);
                }
            });
            collector.Start();
            try
            {
                for (int i = 0; i < 3; i++)
                {
                    using (var source = new CancellationTokenSource())
                    {
                        SameAnswers(expected, retriever.Retrieve(Question, options, source.Token));
                    }
                    // Nobody disposes these: the finalizers do.
                    Same(file.Info.Title, StairIndex.Open(indexPath).Info.Title, "title");
                    Same(file.GetSection(0).Title, StairIndex.Open(indexPath).GetSection(0).Title, "title");
                    SameAnswers(expected, NewRetriever().Retrieve(Question, options));
                }
            }
            finally
            {
                Volatile.Write(ref done, true);
                collector.Join();
            }
        }

        private StairRetriever NewRetriever()
        {
            // One thread: on a busy machine several wait for each other.
            return new StairRetriever(model, index, new RetrieverOptions { Deterministic = true, Threads = 1 });
        }
    }

    // The test runner.

    private static void Test(string name, Action body)
    {
        var time = Stopwatch.StartNew();
        try
        {
            body();
            passed++;
            Console.WriteLine("ok      " + name + " (" + time.ElapsedMilliseconds + " ms)");
        }
        catch (Exception error)
        {
            failed++;
            Console.WriteLine("FAILED  " + name + ": " + error);
        }
    }

    private static void TestIf(string file, string name, Action body)
    {
        if (file != null)
        {
            Test(name, body);
        }
        else
        {
            Console.WriteLine("skipped " + name + ": it needs run.sh");
        }
    }

    private static void Check(bool condition, string what)
    {
        if (!condition)
        {
            throw new InvalidOperationException("does not hold: " + what);
        }
    }

    private static void Same<T>(T expected, T found, string what)
    {
        Check(EqualityComparer<T>.Default.Equals(expected, found), what + ": expected " + expected + ", found " + found);
    }

    private static void SameSets(IEnumerable<string> expected, IEnumerable<string> found)
    {
        var left = new HashSet<string>(expected);
        var right = new HashSet<string>(found);
        Check(left.Count > 0, "something is expected");
        Check(
            left.SetEquals(right),
            "missing: " + string.Join(", ", left.Except(right)) + "; too many: " + string.Join(", ", right.Except(left)));
    }

    private static void SameAnswers(RetrieveResult expected, RetrieveResult found)
    {
        Same(Describe(expected), Describe(found), "answers");
    }

    private static string Describe(RetrieveResult answer)
    {
        return string.Join(
            "; ",
            answer.Hits.Select(hit => hit.Section + " " + BitConverter.DoubleToInt64Bits(hit.LogProb).ToString("x16")));
    }

    private static T Throws<T>(Action body)
        where T : Exception
    {
        try
        {
            body();
        }
        catch (T error)
        {
            return error;
        }
        throw new InvalidOperationException("expected " + typeof(T).Name + ", and nothing was thrown");
    }

    private static StairException Throws(StairErrorCode code, Action body)
    {
        var error = Throws<StairException>(body);
        Same(code, error.Code, "code of \"" + error.Message + "\"");
        Check(error.Message.Length > 0, "a message");
        return error;
    }

    private static IEnumerable<StairErrorCode> Codes()
    {
        return Enum.GetValues(typeof(StairErrorCode)).Cast<StairErrorCode>();
    }

    private static string SnakeCase(string name)
    {
        return Regex.Replace(name, "(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_").ToLowerInvariant();
    }

    private static string WithoutComments(string path)
    {
        return Regex.Replace(File.ReadAllText(path), @"/\*.*?\*/|//[^\n]*", " ", RegexOptions.Singleline);
    }

    private static string Variable(string name)
    {
        string value = Environment.GetEnvironmentVariable(name);
        return string.IsNullOrEmpty(value) ? null : value;
    }
}

package io.stasis.tests.architecture;

import static com.tngtech.archunit.core.domain.JavaClass.Predicates.resideInAnyPackage;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.classes;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;
import static com.tngtech.archunit.library.dependencies.SlicesRuleDefinition.slices;

import com.tngtech.archunit.base.DescribedPredicate;
import com.tngtech.archunit.core.domain.AccessTarget;
import com.tngtech.archunit.core.domain.JavaAccess;
import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.importer.ImportOption;
import com.tngtech.archunit.junit.AnalyzeClasses;
import com.tngtech.archunit.junit.ArchTest;
import com.tngtech.archunit.lang.ArchCondition;
import com.tngtech.archunit.lang.ArchRule;
import com.tngtech.archunit.lang.ConditionEvents;
import com.tngtech.archunit.lang.SimpleConditionEvent;
import com.tngtech.archunit.library.Architectures;
import com.tngtech.archunit.library.dependencies.SliceAssignment;
import com.tngtech.archunit.library.dependencies.SliceIdentifier;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;

/** The picture of the modules, as rules that the build keeps. */
@AnalyzeClasses(packages = "io.stasis", importOptions = ImportOption.DoNotIncludeTests.class)
class ArchitectureTest {
    private static final String LINUX = "io.stasis.linux..";
    private static final String IMAGE = "io.stasis.image..";
    private static final String ENGINE = "io.stasis.engine..";
    private static final String ACTORS = "io.stasis.actors..";
    private static final String TOOLS = "io.stasis.tools..";
    private static final String CLIENT = "io.stasis.client..";
    private static final String LIFECYCLES = "io.stasis.engine.lifecycle..";

    @ArchTest
    static final ArchRule importsPointOneWay = Architectures.layeredArchitecture()
            .consideringOnlyDependenciesInLayers()
            .withOptionalLayers(true)
            .layer("tools")
            .definedBy(TOOLS, CLIENT)
            .layer("actors")
            .definedBy(ACTORS)
            .layer("engine")
            .definedBy(ENGINE)
            .layer("native-bridge")
            .definedBy(LINUX)
            .layer("image-format")
            .definedBy(IMAGE)
            .whereLayer("tools")
            .mayNotBeAccessedByAnyLayer()
            .whereLayer("actors")
            .mayOnlyBeAccessedByLayers("tools")
            .whereLayer("engine")
            .mayOnlyBeAccessedByLayers("actors", "tools")
            .whereLayer("native-bridge")
            .mayOnlyBeAccessedByLayers("engine", "actors", "tools")
            .whereLayer("image-format")
            .mayOnlyBeAccessedByLayers("engine", "actors", "tools");

    @ArchTest
    static final ArchRule everyClassBelongsToAModule =
            classes().should().resideInAnyPackage(LINUX, IMAGE, ENGINE, ACTORS, TOOLS, CLIENT);

    @ArchTest
    static final ArchRule akkaStaysInTheActors = noClasses()
            .that()
            .resideInAnyPackage(LINUX, IMAGE, ENGINE, CLIENT)
            .should()
            .dependOnClassesThat()
            .resideInAnyPackage("akka..", "scala..", "com.typesafe..");

    @ArchTest
    static final ArchRule theImageFormatKnowsNothingOfLinux = noClasses()
            .that()
            .resideInAPackage(IMAGE)
            .should()
            .dependOnClassesThat()
            .resideInAnyPackage(LINUX, "com.sun.jna..");

    @ArchTest
    static final ArchRule onlyTheBridgeCallsNativeCode = noClasses()
            .that()
            .resideOutsideOfPackage(LINUX)
            .should()
            .dependOnClassesThat()
            .resideInAPackage("com.sun.jna..");

    @ArchTest
    static final ArchRule theClientLibraryNeedsOnlyTheJdk = classes()
            .that()
            .resideInAPackage(CLIENT)
            .should()
            .onlyDependOnClassesThat()
            .resideInAnyPackage(CLIENT, "java..")
            .allowEmptyShould(true);

    @ArchTest
    static final ArchRule onlyTheToolsKnowTheTerminalLibrary = noClasses()
            .that()
            .resideOutsideOfPackage(TOOLS)
            .should()
            .dependOnClassesThat()
            .resideInAPackage("org.jline..");

    /** Values of time and I/O exceptions are not allowed either: a lifecycle decides from what it is told. */
    @ArchTest
    static final ArchRule lifecyclesArePure = noClasses()
            .that()
            .resideInAPackage(LIFECYCLES)
            .should()
            .dependOnClassesThat(resideInAnyPackage(
                            "java.io..",
                            "java.nio..",
                            "java.net..",
                            "java.util.concurrent..",
                            "java.lang.ref..",
                            LINUX,
                            IMAGE)
                    .or(clocksAndChance()))
            .orShould(readTheClock())
            .allowEmptyShould(true);

    @ArchTest
    static final ArchRule packagesHaveNoCycles =
            slices().assignedFrom(packagesBelowTheModulesRoots()).should().beFreeOfCycles();

    /** A newcomer can keep about a dozen classes in mind. */
    @ArchTest
    static final ArchRule packagesAreSmall =
            classes().that().resideInAPackage("io.stasis..").should(new SmallPackages(16));

    /** A module's root package holds its vocabulary and puts it together, so it may know its parts and they it. */
    private static SliceAssignment packagesBelowTheModulesRoots() {
        return new SliceAssignment() {
            @Override
            public SliceIdentifier getIdentifierOf(JavaClass type) {
                String name = type.getPackageName();
                return name.matches("io\\.stasis\\.\\w+\\..*") ? SliceIdentifier.of(name) : SliceIdentifier.ignore();
            }

            @Override
            public String getDescription() {
                return "packages";
            }
        };
    }

    private static DescribedPredicate<JavaClass> clocksAndChance() {
        return DescribedPredicate.describe(
                "clocks and chance",
                type -> Set.of(
                                "java.time.Clock",
                                "java.util.Random",
                                "java.util.UUID",
                                "java.security.SecureRandom",
                                "java.lang.Thread",
                                "java.lang.Process",
                                "java.lang.ProcessHandle",
                                "java.lang.Runtime")
                        .contains(type.getName()));
    }

    private static ArchCondition<JavaClass> readTheClock() {
        return new ArchCondition<>("read the clock") {
            @Override
            public void check(JavaClass type, ConditionEvents events) {
                for (JavaAccess<?> access : type.getAccessesFromSelf()) {
                    AccessTarget target = access.getTarget();
                    boolean clock = target.getOwner().isEquivalentTo(System.class)
                            || target.getOwner().getPackageName().equals("java.time")
                                    && target.getName().equals("now");
                    events.add(new SimpleConditionEvent(type, clock, access.getDescription()));
                }
            }
        };
    }

    /** At most so many top-level classes in a package, package-info not counted. */
    private static final class SmallPackages extends ArchCondition<JavaClass> {
        private final int most;
        private final Map<String, Set<String>> names = new TreeMap<>();

        SmallPackages(int most) {
            super("be in packages of at most " + most + " classes");
            this.most = most;
        }

        @Override
        public void check(JavaClass type, ConditionEvents events) {
            if (type.isTopLevelClass() && !type.getSimpleName().equals("package-info")) {
                names.computeIfAbsent(type.getPackageName(), name -> new TreeSet<>())
                        .add(type.getSimpleName());
            }
        }

        @Override
        public void finish(ConditionEvents events) {
            names.forEach((name, classes) -> events.add(new SimpleConditionEvent(
                    name, classes.size() <= most, name + " has " + classes.size() + ": " + classes)));
        }
    }
}
